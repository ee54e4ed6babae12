//! What a description plugs into slots of the board: disks and a network card, by virtio, SD cards, and a network
//! into a network card that the board has.

use system::board::SlotKind;
use system::{Disk, Plugged, Slot};

/// Today's interface of virtio.
pub const MODERN: &str = "virtio-mmio.force-legacy=false";
/// A core that tells a device of a request hands it over itself: else QEMU's main loop takes it when the host
/// gets to it, and the request takes as long as that.
pub const AT_ONCE: &str = "virtio-mmio.ioeventfd=off";
/// A device on a PCI bus: its DMA goes by the SMMU, it has today's interface only, and a core hands its
/// requests over itself, as with [`AT_ONCE`].
const PCI: &str = "iommu_platform=on,disable-legacy=on,ioeventfd=off";
/// What a disk's geometry may be, which nothing uses any more: QEMU would guess one from the first block, and
/// wait for it before time begins.
const HEADS: u64 = 16;
const SECTORS: u64 = 63;
const MOST_CYLINDERS: u64 = 16_383;
/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Returns QEMU's arguments for what is plugged in.
pub fn plugged(plugged: &Plugged) -> impl Iterator<Item = String> {
    let mut all = Vec::new();
    let mut option = |name: &str, value: String| all.extend([name.to_owned(), value]);
    let mut slots = plugged.disks.iter().map(|disk| disk.slot).chain(plugged.network);
    if slots.any(|slot| slot.kind == SlotKind::Virtio) {
        option("-global", MODERN.into());
        option("-global", AT_ONCE.into());
    }
    for (n, disk) in plugged.disks.iter().enumerate() {
        option("-drive", drive(n, disk));
        if disk.slot.kind.is_card() {
            // Unless the board has the card already.
            if disk.slot.kind == SlotKind::CardBus {
                option("-device", format!("sd-card,bus={},drive=disk{n}", disk.slot.bus));
            }
            continue;
        }
        let cylinders = (disk.size / (SECTOR * SECTORS * HEADS)).clamp(1, MOST_CYLINDERS);
        let geometry = format!("cyls={cylinders},heads={HEADS},secs={SECTORS}");
        let device = device("virtio-blk", disk.slot);
        option("-device", format!("{device},drive=disk{n},{geometry}"));
    }
    match plugged.network {
        None => {}
        Some(Slot { kind: SlotKind::Nic(number), .. }) => {
            // The board's cards take networks in this order. One that no guest has gets an empty one.
            (0..number).for_each(|_| option("-nic", "user,restrict=on".into()));
            option("-nic", "user,id=network".into());
        }
        Some(slot) => {
            option("-netdev", "user,id=network".into());
            // Without firmware to boot from it, which is in another package.
            let firmware = if slot.kind == SlotKind::Pci { ",romfile=" } else { "" };
            let card = device("virtio-net", slot);
            option("-device", format!("{card},netdev=network{firmware}"));
        }
    }
    all.into_iter()
}

/// Returns a virtio device of this kind in a slot.
fn device(kind: &str, slot: Slot) -> String {
    let bus = slot.bus;
    match slot.kind {
        SlotKind::Pci => format!("{kind}-pci,bus={bus},{PCI}"),
        SlotKind::Virtio | SlotKind::Card | SlotKind::CardBus | SlotKind::Nic(_) => {
            format!("{kind}-device,bus={bus}")
        }
    }
}

/// Returns what is on disk `n`. QEMU takes two commas of a file's name for one.
fn drive(n: usize, disk: &Disk) -> String {
    let file = disk.file.display().to_string().replace(',', ",,");
    let snapshot = if disk.keep { "off" } else { "on" };
    let place = if disk.slot.kind == SlotKind::Card { disk.slot.bus } else { "if=none" };
    format!("{place},id=disk{n},format=raw,snapshot={snapshot},file={file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plugged_in_goes_to_its_slot() {
        assert_eq!(plugged(&Plugged::default()).count(), 0);
        let (slot, size) = (Slot { bus: "virtio-mmio-bus.31", kind: SlotKind::Virtio }, 3 << 30);
        let disk = Disk { slot, file: "a,b.img".into(), size, keep: false };
        let network = Some(Slot { bus: "virtio-mmio-bus.30", kind: SlotKind::Virtio });
        let all = Plugged { disks: vec![disk], network };
        let args: Vec<_> = plugged(&all).collect();
        let has = |option: &str, value: &str| args.windows(2).any(|pair| pair == [option, value]);
        assert!(has("-drive", "if=none,id=disk0,format=raw,snapshot=on,file=a,,b.img"), "{args:?}");
        let device =
            "virtio-blk-device,bus=virtio-mmio-bus.31,drive=disk0,cyls=6241,heads=16,secs=63";
        assert!(has("-device", device), "{args:?}");
        let card = "virtio-net-device,bus=virtio-mmio-bus.30,netdev=network";
        assert!(has("-device", card) && has("-global", MODERN), "{args:?}");
    }

    #[test]
    fn a_card_is_a_drive_only() {
        let slot = Slot { bus: "if=sd,index=1", kind: SlotKind::Card };
        let disk = Disk { slot, file: "a.img".into(), size: 1 << 20, keep: true };
        let all = Plugged { disks: vec![disk], network: None };
        let drive = "if=sd,index=1,id=disk0,format=raw,snapshot=off,file=a.img";
        assert_eq!(plugged(&all).collect::<Vec<_>>(), ["-drive", drive]);
    }

    #[test]
    fn a_card_is_put_into_a_host_that_has_none() {
        let slot = Slot { bus: "/generic-sdhci/sd-bus", kind: SlotKind::CardBus };
        let disk = Disk { slot, file: "a.img".into(), size: 1 << 20, keep: false };
        let all = Plugged { disks: vec![disk], network: None };
        let args: Vec<_> = plugged(&all).collect();
        let drive = "if=none,id=disk0,format=raw,snapshot=on,file=a.img";
        let card = "sd-card,bus=/generic-sdhci/sd-bus,drive=disk0";
        assert_eq!(args, ["-drive", drive, "-device", card]);
    }

    /// The others would take it.
    #[test]
    fn a_network_goes_to_the_card_of_that_number() {
        let network = Some(Slot { bus: "nic=2", kind: SlotKind::Nic(2) });
        let args: Vec<_> = plugged(&Plugged { disks: Vec::new(), network }).collect();
        let empty = "user,restrict=on";
        assert_eq!(args, ["-nic", empty, "-nic", empty, "-nic", "user,id=network"]);
    }

    /// Without `iommu_platform` such a device would go past the SMMU.
    #[test]
    fn what_is_plugged_into_a_pci_bus_goes_by_the_smmu() {
        let slot = Slot { bus: "pcie.0", kind: SlotKind::Pci };
        let disk = Disk { slot, file: "a.img".into(), size: 1 << 20, keep: true };
        let all = Plugged { disks: vec![disk.clone(), disk], network: Some(slot) };
        let args: Vec<_> = plugged(&all).collect();
        let devices: Vec<_> = args.iter().filter(|arg| arg.starts_with("virtio-")).collect();
        assert_eq!(devices.len(), 3);
        for device in devices {
            assert!(device.contains("-pci,bus=pcie.0,iommu_platform=on,"), "{device}");
        }
        assert!(!args.contains(&"-global".to_owned()), "{args:?}");
    }
}
