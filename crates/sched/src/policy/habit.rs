use super::Mode;

/// Whether a vCPU is mostly in programs: what it was found to execute when it
/// lost its core, lately.
///
/// A program that calls its kernel every few microseconds gains nothing from a
/// core where it cannot: it would be on its way all the time. One that computes
/// enters its kernel too, for each tick, and should not lose its core for that.
/// So what counts is the tendency of several looks, as a branch predictor's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    /// 0 to [`MOST`].
    programs: u8,
    waited_for: bool,
    /// It has lost its core and was looked at.
    seen: bool,
}

const MOST: u8 = 3;
/// From here on it is mostly in programs.
const ENOUGH: u8 = 2;

impl Habit {
    /// It has the core.
    pub fn runs(&mut self) {
        self.waited_for = false;
        self.seen = false;
    }

    /// Others waited until it had left its kernel, as it was there when its
    /// quantum was over.
    pub fn was_waited_for(&mut self) {
        self.waited_for = true;
    }

    /// Another vCPU has the core, and it would execute this. Answers whether it is
    /// mostly in programs.
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
        self.programs >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(habit: &mut Habit, mode: Mode) -> bool {
        habit.runs();
        habit.lost_core(mode)
    }

    /// hackbench: one look in ten finds it in a program.
    #[test]
    fn who_calls_its_kernel_all_the_time_is_not_in_programs() {
        let mut habit = Habit::default();
        let modes = (0..100).map(|i| if i % 10 == 0 { Mode::User } else { Mode::Kernel });
        assert!(modes.into_iter().all(|mode| !look(&mut habit, mode)));
    }

    /// A program computes; a tick takes it to its kernel now and then.
    #[test]
    fn a_tick_does_not_change_the_habit() {
        let mut habit = Habit::default();
        assert!(!look(&mut habit, Mode::User), "one look is not enough");
        assert!(look(&mut habit, Mode::User));
        assert!(look(&mut habit, Mode::User));
        assert!(look(&mut habit, Mode::Kernel), "the tick");
        assert!(look(&mut habit, Mode::User));
    }

    #[test]
    fn who_was_waited_for_was_in_its_kernel() {
        let mut habit = Habit::default();
        for _ in 0..10 {
            habit.runs();
            habit.was_waited_for();
            assert!(!habit.lost_core(Mode::User));
        }
    }

    /// While it waits, several things happen on its core.
    #[test]
    fn each_loss_of_the_core_is_looked_at_once() {
        let mut habit = Habit::default();
        for _ in 0..10 {
            assert!(!habit.lost_core(Mode::User));
        }
        habit.runs();
        assert!(habit.lost_core(Mode::User));
    }
}
