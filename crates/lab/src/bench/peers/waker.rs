//! The real-time guest: one image for all, into which is written where the hypervisor has put the
//! interrupt controller and the UART, and what to do.

use super::system::System;
use miette::{Result, miette};

/// What precedes the parameters in the image, and where (`guests/waker/src/start.S`).
const MAGIC: &[u8; 8] = b"waker-v1";
const OFFSET: usize = 64;

/// How many parameters there are.
const COUNT: usize = 9;

/// Physical addresses in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    gicd: u64,
    gicr: u64,
    uart: u64,
}

/// QEMU's board. Cassata and our program for KVM put everything there as well.
const BOARD: Place = Place { gicd: 0x0800_0000, gicr: 0x080a_0000, uart: 0x0900_0000 };
/// A guest of Xen's (Xen, `xen/include/public/arch-arm.h`).
const XEN: Place = Place { gicd: 0x0300_1000, gicr: 0x0302_0000, uart: 0x2200_0000 };

/// What the guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It wakes so many times, or for ever, and executes something each time.
    Wake { period_ns: u64, periods: Option<u64>, burn_ns: u64 },
    /// It does so many times each of what a hypervisor has to answer.
    Call { repetitions: u64 },
    /// It sleeps, and its second core interrupts it so many times.
    Woken { mean_ns: u64, interrupts: u64 },
}

/// What the image is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub system: System,
    pub role: Role,
    /// The guest's counter when it begins.
    pub begin_ns: u64,
}

impl Parameters {
    /// Returns them in the guest's order (`guests/waker/src/platform.h`).
    pub fn words(&self) -> [u64; COUNT] {
        let Place { gicd, gicr, uart } = match self.system {
            System::Xen(_) => XEN,
            _ => BOARD,
        };
        let begin = self.begin_ns;
        match self.role {
            Role::Wake { period_ns, periods, burn_ns } => {
                let (count, endless) = (periods.unwrap_or(0), u64::from(periods.is_none()));
                [gicd, gicr, uart, 0, begin, period_ns, count, burn_ns, endless]
            }
            Role::Call { repetitions } => [gicd, gicr, uart, 1, begin, 0, repetitions, 0, 0],
            Role::Woken { mean_ns, interrupts } => {
                [gicd, gicr, uart, 2, begin, mean_ns, interrupts, 0, 0]
            }
        }
    }

    /// Returns how many cores the guest has: the first shares its core with Linux's first, and the
    /// second the next.
    pub const fn vcpus(&self) -> u32 {
        match self.role {
            Role::Woken { .. } => 2,
            Role::Wake { .. } | Role::Call { .. } => 1,
        }
    }

    /// Returns them as our program for KVM takes them.
    pub fn text(&self) -> String {
        self.words().map(|word| word.to_string()).join(" ")
    }

    /// Writes them into `image`.
    ///
    /// # Errors
    /// When it is another image.
    pub fn write(&self, mut image: Vec<u8>) -> Result<Vec<u8>> {
        let room = image.get_mut(OFFSET..OFFSET + 8 * (1 + COUNT));
        let room = room.filter(|room| room.starts_with(MAGIC)).ok_or_else(|| {
            miette!(
                help = "`./cassata` builds it from guests/waker",
                "build/guests/waker.bin has no room for parameters at offset {OFFSET}"
            )
        })?;
        for (room, word) in room[8..].chunks_exact_mut(8).zip(self.words()) {
            room.copy_from_slice(&word.to_le_bytes());
        }
        Ok(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_behind_the_magic_number_and_nowhere_else() {
        let role = Role::Wake { period_ns: 1_000_000, periods: Some(500), burn_ns: 0 };
        let parameters = Parameters { system: System::KVM, role, begin_ns: 7 };
        let mut image = vec![0xff; 200];
        assert!(parameters.write(image.clone()).is_err());
        image[OFFSET..OFFSET + 8].copy_from_slice(MAGIC);
        let written = parameters.write(image.clone()).unwrap();
        assert_eq!(written[72..80], 0x0800_0000_u64.to_le_bytes());
        assert_eq!(written[72 + 4 * 8..][..8], 7_u64.to_le_bytes());
        assert_eq!((written.len(), &written[..72]), (image.len(), &image[..72]));
        assert_eq!(written[72 + 8 * COUNT..], image[72 + 8 * COUNT..]);
        assert!(parameters.write(image[..100].to_vec()).is_err());
    }

    #[test]
    fn xen_has_its_own_addresses_and_an_endless_guest_no_count() {
        let system = System::Xen(super::super::system::Scheduler::Credit);
        let role = Role::Wake { period_ns: 10, periods: None, burn_ns: 5 };
        let parameters = Parameters { system, role, begin_ns: 1 };
        assert_eq!(parameters.words()[..3], [0x0300_1000, 0x0302_0000, 0x2200_0000]);
        assert!(parameters.text().ends_with(" 0 1 10 0 5 1"));
        let role = Role::Call { repetitions: 9 };
        let calling = Parameters { role, ..parameters };
        assert_eq!((&calling.words()[3..], calling.vcpus()), (&[1, 1, 0, 9, 0, 0][..], 1));
        let role = Role::Woken { mean_ns: 3, interrupts: 4 };
        let woken = Parameters { role, ..parameters };
        assert_eq!((&woken.words()[3..], woken.vcpus()), (&[2, 1, 3, 4, 0, 0][..], 2));
    }
}
