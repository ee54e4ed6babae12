//! Where the stages of an interrupt's way begin and end, as addresses: symbols of the images, and
//! instructions that are found by decoding.

use crate::bundle::Bundle;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;
use vtime::marks::{Kind, Mark};

/// EL2 takes an interrupt of a guest: the first instruction of the vector.
pub const ENTRY: &str = "entry";
/// A core of EL2's goes on behind a WFI.
pub const WAKE: &str = "wake";
/// EL2 reads which interrupt it is.
pub const ACKNOWLEDGE: &str = "acknowledge";
/// EL2 has handled the interrupt.
pub const HANDLED: &str = "handled";
/// EL2 has decided again which vCPU has the core, after it slept or did something else.
pub const DECIDED: &str = "decided";
/// EL2 begins to take a vCPU off the hardware, for another one.
pub const SWITCH: &str = "switch";
/// EL2 begins to let vCPUs leave that lose the core.
pub const DEPART: &str = "depart";
/// It has done so.
pub const DEPARTED: &str = "departed";
/// EL2 begins to load the guest's general registers.
pub const RESUME: &str = "resume";
/// The guest's vector.
pub const VECTOR: &str = "vector";
/// The first instruction of the guest's handler that was written in C.
pub const HANDLER: &str = "handler";

/// Offset of the vector for an interrupt of a guest that runs in AArch64 (DDI 0487, D1.3.1).
const LOWER_IRQ: u64 = 0x480;
/// Offset of the vector for an interrupt at the same exception level, with SP_EL0.
const SAME_IRQ: u64 = 0x80;
/// WFI.
const WFI: u32 = 0xd503_207f;
/// MRS Xt, ICC_IAR1_EL1; the lowest five bits are t.
const READ_IAR1: u32 = 0xd538_cc00;
const REGISTER: u32 = 0x1f;
/// BL, and the bits that say so.
const BL: u32 = 0x9400_0000;
const BL_MASK: u32 = 0xfc00_0000;

/// An image's code and symbols.
struct Image {
    /// For messages.
    name: String,
    /// Address of the first instruction, and all of them.
    begin: u64,
    words: Vec<u32>,
    /// Names and addresses.
    symbols: Vec<(String, u64)>,
}

impl Image {
    fn read(name: &str, elf: &[u8]) -> Result<Self> {
        let file = object::File::parse(elf).into_diagnostic();
        let file = file.wrap_err_with(|| format!("{name} is no ELF file"))?;
        let text = file.section_by_name(".text");
        let text = text.ok_or_else(|| miette!("{name} has no section .text"))?;
        let bytes = text.data().into_diagnostic()?;
        let (words, _) = bytes.as_chunks::<4>();
        let words = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let symbols = file.symbols();
        let symbols = symbols.filter_map(|one| Some((one.name().ok()?.to_owned(), one.address())));
        Ok(Self { name: name.into(), begin: text.address(), words, symbols: symbols.collect() })
    }

    /// Returns the address of the one symbol that is wanted; `what` names it for a message.
    fn symbol(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<u64> {
        let found: Vec<_> = self.symbols.iter().filter(|(name, _)| wanted(name)).collect();
        match found[..] {
            [(_, address)] => Ok(*address),
            _ => Err(miette!(
                help = "crates/lab/src/bench/kvm_rt/stages/marks.rs says where the stages begin and end",
                "{} has {} symbols for {what}, and must have one",
                self.name,
                found.len()
            )),
        }
    }

    /// Returns the address of a method of `Pcpu` in `module` of EL2.
    fn method(&self, module: &str, method: &str) -> Result<u64> {
        // As Rust mangles names (RFC 2603): each with its length.
        let [path, end] = [module, method].map(|name| format!("{}{name}", name.len()));
        let end = format!("4Pcpu{end}");
        let is_it = |name: &str| name.contains(&path) && name.ends_with(&end);
        self.symbol(&format!("Pcpu::{method}"), is_it)
    }

    /// Returns the addresses of all instructions that are wanted; there must be one at least.
    fn instructions(&self, what: &str, wanted: impl Fn(u64, u32) -> bool) -> Result<Vec<u64>> {
        let all =
            self.words.iter().enumerate().map(|(at, &word)| (self.begin + 4 * at as u64, word));
        let found: Vec<u64> =
            all.filter(|&(at, word)| wanted(at, word)).map(|(at, _)| at).collect();
        if found.is_empty() {
            return Err(miette!("{} has no instruction for {what}", self.name));
        }
        Ok(found)
    }

    /// Returns the addresses behind all calls of a function.
    fn returns(&self, what: &str, function: u64) -> Result<Vec<u64>> {
        let calls = self.instructions(what, |at, word| call(at, word) == Some(function))?;
        Ok(calls.into_iter().map(|at| at + 4).collect())
    }
}

/// Returns what an instruction at this address calls, if it is a BL.
fn call(at: u64, word: u32) -> Option<u64> {
    let offset = i64::from(((word << 6) as i32) >> 4);
    (word & BL_MASK == BL).then(|| at.wrapping_add_signed(offset))
}

/// Returns all marks, at physical addresses, of the hypervisor in `bundle` and of FreeRTOS in its VM
/// `rtos`, whose image is the file `image`.
pub fn find(
    bundle: &Bundle,
    hypervisor: &[u8],
    rtos: usize,
    image: &Path,
) -> Result<Vec<(Kind, Mark)>> {
    let el2 = Image::read("the hypervisor", hypervisor)?;
    let base = bundle.tables.board.hypervisor_pa;
    let mut all = Vec::new();
    let mut add = |kind, name: &str, addresses: Vec<u64>, base: u64| {
        let mark = |at: u64| (kind, Mark { name: name.into(), address: base.wrapping_add(at) });
        all.extend(addresses.into_iter().map(mark));
    };
    let vectors = el2.symbol("exception_vectors", |name| name == "exception_vectors")?;
    let take = el2.method("interrupts", "take")?;
    let decide = el2.method("run_loop", "decide_into")?;
    let save = el2.method("switch", "save_loaded")?;
    let migrate = el2.method("displacement", "migrate")?;
    let resume = el2.symbol("resume_guest", |name| name == "resume_guest")?;
    let wakes = el2.instructions("WFI", |_, word| word == WFI)?;
    let reads = |_, word| word & !REGISTER == READ_IAR1;
    add(Kind::Vector, ENTRY, vec![vectors + LOWER_IRQ], base);
    add(Kind::Plain, WAKE, wakes.into_iter().map(|at| at + 4).collect(), base);
    add(Kind::Plain, ACKNOWLEDGE, el2.instructions("a read of ICC_IAR1_EL1", reads)?, base);
    add(Kind::Plain, HANDLED, el2.returns("a call of Pcpu::take", take)?, base);
    let decided = el2.returns("a call of Pcpu::decide_into", decide)?;
    add(Kind::Plain, DECIDED, decided, base);
    add(Kind::Plain, SWITCH, vec![save], base);
    add(Kind::Plain, DEPART, vec![migrate], base);
    add(Kind::Plain, DEPARTED, el2.returns("a call of Pcpu::migrate", migrate)?, base);
    add(Kind::Plain, RESUME, vec![resume], base);
    let elf = std::fs::read(image).into_diagnostic();
    let elf = elf.wrap_err_with(|| format!("cannot read {}", image.display()))?;
    let guest = Image::read("FreeRTOS", &elf)?;
    let vm = &bundle.tables.vms[rtos];
    let base = vm.ram_pa.wrapping_sub(vm.ram_ipa);
    let vectors = guest.symbol("exception_vectors", |name| name == "exception_vectors")?;
    let handler = "vApplicationIRQHandler";
    let handler = guest.symbol(handler, |name| name == handler)?;
    add(Kind::Plain, VECTOR, vec![vectors + SAME_IRQ], base);
    add(Kind::End, HANDLER, vec![handler], base);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_go_both_ways() {
        // As objdump shows two calls of EL2's.
        assert_eq!(call(0x3cc8, 0x9400_0012), Some(0x3d10));
        assert_eq!(call(0x4d20, 0x97ff_fbfc), Some(0x3d10));
        assert_eq!(call(0x4d20, 0x17ff_fbfc), None, "it does not come back");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let (begin, words) = (0x1000, vec![WFI, 0, WFI, 0x9400_0001]);
        let symbols = vec![("_RN3el24pcpu10interruptsNtB4_4Pcpu4take".into(), 0x1010)];
        let image = Image { name: "x".into(), begin, words, symbols };
        assert_eq!(image.instructions("WFI", |_, word| word == WFI).unwrap(), [0x1000, 0x1008]);
        assert_eq!(image.method("interrupts", "take").unwrap(), 0x1010);
        assert_eq!(image.returns("take", 0x1010).unwrap(), [0x1010]);
        let error = image.method("switch", "save_loaded").unwrap_err().to_string();
        assert!(error.contains("x has 0 symbols for Pcpu::save_loaded"), "{error}");
        let error = image.returns("a call of it", 0x2000).unwrap_err().to_string();
        assert!(error.contains("x has no instruction for a call of it"), "{error}");
    }
}
