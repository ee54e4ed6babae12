use super::Mode;

/// A two-bit predictor of the mode in which a vCPU loses its core: mostly in programs, or
/// mostly in its kernel.
///
/// A program that calls its kernel every few microseconds gains nothing from a base
/// where it cannot execute its kernel: it would migrate all the time. A program that
/// computes enters its kernel too, for each tick, and should not lose its base for
/// that. So several observations count, as in a branch predictor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeBias {
    /// 0 to [`MOST`].
    programs: u8,
    waited_for: bool,
    /// The vCPU has lost its core, and its mode was counted.
    seen: bool,
}

const MOST: u8 = 3;
/// The count from which on a vCPU is mostly in programs.
const ENOUGH: u8 = 2;

impl ModeBias {
    /// Records that the vCPU has the core.
    pub fn runs(&mut self) {
        self.waited_for = false;
        self.seen = false;
    }

    /// Records that other vCPUs waited until this one had left its kernel, because it was
    /// there when its quantum was over.
    pub fn was_waited_for(&mut self) {
        self.waited_for = true;
    }

    /// Records that another vCPU has the core, and what this one would execute. Returns true
    /// if it is mostly in programs.
    pub fn lost_core(&mut self, mode: Mode) -> bool {
        if !self.seen {
            self.seen = true;
            let in_program = mode == Mode::User && !self.waited_for;
            self.programs = if in_program {
                MOST.min(self.programs + 1)
            } else {
                self.programs.saturating_sub(1)
            };
        }
        self.is_in_programs()
    }

    /// Returns true if it is mostly in programs.
    #[must_use]
    pub const fn is_in_programs(&self) -> bool {
        self.programs >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(bias: &mut ModeBias, mode: Mode) -> bool {
        bias.runs();
        bias.lost_core(mode)
    }

    /// hackbench: one look in ten finds it in a program.
    #[test]
    fn a_vcpu_that_calls_its_kernel_all_the_time_is_not_in_programs() {
        let mut bias = ModeBias::default();
        let modes = (0..100).map(|i| if i % 10 == 0 { Mode::User } else { Mode::Kernel });
        assert!(modes.into_iter().all(|mode| !look(&mut bias, mode)));
    }

    /// A program computes; a tick takes it to its kernel now and then.
    #[test]
    fn a_tick_does_not_change_the_bias() {
        let mut bias = ModeBias::default();
        assert!(!look(&mut bias, Mode::User), "one look is not enough");
        assert!(look(&mut bias, Mode::User));
        assert!(look(&mut bias, Mode::User));
        assert!(look(&mut bias, Mode::Kernel), "the tick");
        assert!(look(&mut bias, Mode::User));
    }

    #[test]
    fn a_vcpu_that_was_waited_for_was_in_its_kernel() {
        let mut bias = ModeBias::default();
        for _ in 0..10 {
            bias.runs();
            bias.was_waited_for();
            assert!(!bias.lost_core(Mode::User));
        }
    }

    /// While it waits, several things happen on its core.
    #[test]
    fn each_loss_of_the_core_is_looked_at_once() {
        let mut bias = ModeBias::default();
        for _ in 0..10 {
            assert!(!bias.lost_core(Mode::User));
        }
        bias.runs();
        assert!(bias.lost_core(Mode::User));
    }
}
