//! What becomes of a vCPU when another one takes its core.
//!
//! A vCPU of a VM with several may hold a lock for which its siblings spin. When a
//! vCPU of higher priority takes its core, they spin until it gets the core back:
//! lock holder preemption. A [`Policy`] decides what to do about that. It is asked
//! at a few moments and returns what EL2 has to do; it uses no register, and does
//! not depend on other policies. A new one is a file beside these, and a line in
//! [`MigrationPolicy`].
//!
//! The *base* of a vCPU is the core that its description names. It is *displaced*
//! while a vCPU of another VM and of higher priority has its base, one of the two
//! being real-time. Its *affinity* is its base and the other cores where the policy
//! may place it; the host chooses them. When the vCPU leaves, it goes to one of
//! these, its *fallback*, or to another one that is idle if the fallback is not.
//! From there it may move on to a core that becomes idle ([`Needs::wanders`]), or
//! take turns on the bases of its siblings ([`Stay`]).

mod adaptive;
mod balance;
mod coscheduling;
mod delayed;
mod mode_bias;
mod none;
mod on_demand;
mod on_request;
mod partition;
mod rotation;
mod rt_vcpu;
mod safe_unsafe;
mod trap_based;

pub use adaptive::{Activations, Adaptive, Choice, Patience};
pub use balance::Balance;
pub use coscheduling::Coscheduling;
pub use delayed::Delayed;
pub use mode_bias::ModeBias;
pub use none::None;
pub use on_demand::OnDemand;
pub use on_request::OnRequest;
pub use partition::Partition;
pub use rotation::{Stay, next_in_rotation};
pub use rt_vcpu::RtVcpu;
pub use safe_unsafe::SafeUnsafe;
pub use trap_based::TrapBased;

use crate::sets::{Member, Set};
use notes::each;

/// What a guest was executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A program of the guest's (EL0).
    User,
    /// The guest's kernel (EL1).
    Kernel,
}

/// What a policy knows about a vCPU that is displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// The vCPU could run; else it sleeps.
    pub ready: bool,
    /// Some core of its affinity, other than its base, has nothing to run.
    pub idle_core: bool,
}

impl Displaced {
    /// All values, each at its [index](Self::index).
    pub const ALL: [Self; 4] = [
        Self { ready: false, idle_core: false },
        Self { ready: true, idle_core: false },
        Self { ready: false, idle_core: true },
        Self { ready: true, idle_core: true },
    ];

    /// Returns its index in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.ready as usize | (self.idle_core as usize) << 1
    }
}

/// What a policy says when a vCPU is displaced, for each [`Displaced`], in one word: a real-time
/// guest waits meanwhile, so it is asked beforehand, and a VM whose policy changes has another word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers(u32);

impl Answers {
    /// Bits of an answer.
    const WIDTH: usize = 8;

    /// Asks a policy.
    #[must_use]
    #[inline(never)]
    pub fn of(policy: &dyn Policy) -> Self {
        Self(Displaced::ALL.into_iter().fold(0, |all, seen| {
            all | (policy.displaced(seen) as u32) << (seen.index() * Self::WIDTH)
        }))
    }

    /// Returns what one of [`MigrationPolicy::SWITCHABLE`] says, without asking it: a VM's policy may
    /// change while guests wait.
    #[must_use]
    pub const fn of_switchable(kind: MigrationPolicy) -> Self {
        const fn always(then: Then) -> u32 {
            then as u32 * 0x0101_0101
        }
        // Of Displaced::ALL: those that are ready, and the one that is beside an idle core.
        const READY: u32 = 0xff00_ff00;
        const READY_BESIDE_IDLE: u32 = 0xff00_0000;
        Self(match kind {
            MigrationPolicy::OnDemand => always(Then::LeaveUntilFree),
            MigrationPolicy::Coscheduling => always(Then::StopOthers) & READY,
            MigrationPolicy::Balance => always(Then::LeaveForIdle) & READY_BESIDE_IDLE,
            _ => always(Then::Stay),
        })
    }

    /// Returns the word.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Makes it of a word of [`Self::bits`].
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the answer.
    #[must_use]
    #[inline]
    pub const fn when(self, seen: Displaced) -> Then {
        Then::from_number(self.0 >> (seen.index() * Self::WIDTH))
    }
}

/// How a guest asks that one of its vCPUs not be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// It cannot.
    None,
    /// By calls that begin and end that.
    Call,
    /// By a word in memory.
    Page,
}

/// What to do with a vCPU that is displaced, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Then {
    /// Leave it where it is.
    Stay,
    /// It goes to its fallback or an idle core, and its base recalls it when that is free.
    LeaveUntilFree,
    /// It goes to a core of its affinity that has nothing to run, and is recalled as above.
    LeaveForIdle,
    /// It goes to its fallback or an idle core, and comes back without a recall.
    Leave,
    /// It stays, and the other vCPUs of its VM stop until it can go on.
    StopOthers,
    /// As [`Self::LeaveUntilFree`] if that pays ([`Activations`]); else it stays, and is asked again.
    LeaveIfItPays,
}

impl Then {
    /// Returns the one with the number in the lower three bits.
    const fn from_number(number: u32) -> Self {
        const ALL: [Then; 8] = [
            Then::Stay,
            Then::LeaveUntilFree,
            Then::LeaveForIdle,
            Then::Leave,
            Then::StopOthers,
            Then::LeaveIfItPays,
            Then::Stay,
            Then::Stay,
        ];
        ALL[(number & 7) as usize]
    }
}

/// Where a vCPU goes on that has just changed between kernel and program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where it is.
    Here,
    /// At its base.
    Base,
    /// At its fallback.
    Fallback,
}

/// What a guest may execute without an exit to EL2 (FEAT_XNX: Arm DDI 0487, D8.4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum View {
    /// Programs and the kernel.
    Full = 0,
    /// Programs; entering the kernel traps.
    UserOnly = 1,
    /// The kernel; returning to a program traps.
    KernelOnly = 2,
}

/// How many views there are.
pub const VIEWS: usize = 3;

/// What EL2 must provide for this policy, derived from its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The policy is asked when its vCPUs are displaced or interrupted, or might be.
    pub a_say: bool,
    /// The vCPUs need a fallback.
    pub fallback: bool,
    /// They are always at their fallback, and never at their base.
    pub lives_at_fallback: bool,
    /// They may go to any core of their affinity, which has to say when it is idle.
    pub wanders: bool,
    /// Their bases have to say whether a vCPU is displaced there.
    pub asks_base: bool,
    /// They go back to their bases by themselves, so that the core they are on has to see when
    /// they sleep.
    pub returns_by_itself: bool,
    /// They may leave when they are displaced, so their base must see at once that one
    /// arrives, even if a vCPU that displaces it has the core.
    pub leaves_when_displaced: bool,
    /// Stage-2 tables for [`View::UserOnly`] and [`View::KernelOnly`].
    pub views: bool,
    /// The policy is asked when an interrupt comes for one that is displaced.
    pub notices_interrupts: bool,
    /// The policy is for a real-time VM, whose vCPUs make way for higher priorities.
    pub for_realtime: bool,
    /// The vCPUs go where they are asked to go.
    pub moves_on_request: bool,
    /// What displaces the vCPUs is observed, and they are asked again after a while.
    pub observes: bool,
}

impl Needs {
    /// What a VM needs that may have any policy of [`MigrationPolicy::SWITCHABLE`].
    pub const SWITCHABLE: Self = Self {
        a_say: true,
        fallback: true,
        wanders: true,
        leaves_when_displaced: true,
        lives_at_fallback: false,
        asks_base: false,
        returns_by_itself: false,
        views: false,
        notices_interrupts: false,
        for_realtime: false,
        moves_on_request: false,
        observes: false,
    };
}

/// See the module.
pub trait Policy: Sync {
    /// Returns true if its vCPUs are always at their fallbacks, and never at their bases.
    fn lives_at_fallback(&self) -> bool {
        false
    }

    /// Returns true if it is for a real-time VM, whose vCPUs make way for higher priorities.
    fn for_realtime(&self) -> bool {
        false
    }

    /// Returns true if a vCPU that leaves goes to its fallback, whether another core is idle or
    /// not, and stays there.
    fn keeps_to_fallback(&self) -> bool {
        false
    }

    /// Returns true if a vCPU that is away goes back to its base without a recall, provided that
    /// its base is free: when it sleeps, and when it has lost the core to another vCPU.
    fn returns_by_itself(&self) -> bool {
        false
    }

    /// Decides about a vCPU that is displaced now. The vCPU that displaces it is loaded.
    fn displaced(&self, _vcpu: Displaced) -> Then {
        Then::Stay
    }

    /// Decides about a vCPU that is displaced and at its base, when an interrupt comes for it;
    /// see [`Needs::notices_interrupts`].
    fn interrupted(&self) -> Then {
        Then::Stay
    }

    /// Returns the view of its vCPUs at their base, or elsewhere.
    fn view(&self, _at_base: bool) -> View {
        View::Full
    }

    /// Returns true if a vCPU goes back to its base that is away, in this mode, and has lost
    /// the core to another vCPU, provided that its base is free and that it is mostly in
    /// programs ([`ModeBias`]).
    fn makes_room(&self, _mode: Mode) -> bool {
        false
    }

    /// Decides where a vCPU goes on that was about to execute what its [view](Self::view)
    /// forbids.
    fn crossed(&self, _into: Mode) -> Side {
        Side::Here
    }

    /// Returns true if a vCPU that displaces one of its vCPUs, which is ready and in this mode,
    /// should wait. `asks`: the guest asks not to be preempted, as [`Self::request`] says.
    fn delays(&self, _mode: Mode, _asks: bool) -> bool {
        false
    }

    /// Returns how a guest asks not to be preempted.
    fn request(&self) -> Request {
        Request::None
    }

    /// Returns true if its vCPUs go where their guest or an operator asks them to go, and stay there.
    fn moves_on_request(&self) -> bool {
        false
    }
}

impl dyn Policy + '_ {
    /// Derives what the policy needs from its answers. All policies have the same code for that.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let interrupted = self.interrupted();
        let mut answers = Given::default();
        answers.add(interrupted);
        let mut leaves_when_displaced = false;
        for vcpu in Displaced::ALL {
            leaves_when_displaced |= answers.add(self.displaced(vcpu));
        }
        let returns_by_itself = self.returns_by_itself();
        let (mut asks_base, mut delays, mut views) = (returns_by_itself, false, false);
        for mode in [Mode::User, Mode::Kernel] {
            asks_base |= self.makes_room(mode);
            delays |= self.delays(mode, true);
            views |= self.delays(mode, false) || self.view(mode == Mode::User) != View::Full;
            answers.to_fallback |= self.crossed(mode) == Side::Fallback;
        }
        let (for_realtime, lives_at_fallback) = (self.for_realtime(), self.lives_at_fallback());
        Needs {
            a_say: answers.any || delays || asks_base,
            fallback: lives_at_fallback || answers.to_fallback,
            lives_at_fallback,
            wanders: (answers.to_fallback || answers.to_idle)
                && !self.keeps_to_fallback()
                && !for_realtime,
            asks_base,
            returns_by_itself,
            leaves_when_displaced,
            views,
            notices_interrupts: interrupted != Then::Stay,
            for_realtime,
            moves_on_request: self.moves_on_request(),
            observes: answers.observes,
        }
    }
}

/// Which answers a policy gives.
#[derive(Default)]
struct Given {
    /// An answer that is not [`Then::Stay`].
    any: bool,
    /// An answer by which a vCPU goes to its fallback.
    to_fallback: bool,
    /// [`Then::LeaveForIdle`].
    to_idle: bool,
    /// [`Then::LeaveIfItPays`].
    observes: bool,
}

impl Given {
    /// Returns true if a vCPU leaves by this one.
    #[inline(never)]
    fn add(&mut self, then: Then) -> bool {
        let observes = then == Then::LeaveIfItPays;
        let to_fallback = observes || matches!(then, Then::Leave | Then::LeaveUntilFree);
        let to_idle = then == Then::LeaveForIdle;
        self.any |= then != Then::Stay;
        self.to_fallback |= to_fallback;
        self.to_idle |= to_idle;
        self.observes |= observes;
        to_fallback || to_idle
    }
}

/// The facts about a vCPU that decide whether it displaces another, or is displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Index of its VM.
    pub vm: usize,
    /// Scheduling priority; larger is higher.
    pub priority: u16,
    /// The VM is a real-time one.
    pub realtime: bool,
}

/// Returns true if `winner`, when it has a core, displaces `loser`, which has that core as
/// its base and `kind` as its policy.
#[must_use]
pub fn displaces(winner: Contender, loser: Contender, kind: MigrationPolicy) -> bool {
    let concerns = if kind.policy().needs().for_realtime { loser } else { winner };
    winner.vm != loser.vm && winner.priority > loser.priority && concerns.realtime
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal, $policy:expr;)*) => {
        /// The policies there are.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum MigrationPolicy {
            $($(#[$doc])* $kind = $number,)*
        }

        impl MigrationPolicy {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns what a system description calls it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// Returns the policy of a number in a packed system.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => Option::None,
                }
            }

            /// Returns the policy itself. Not inlined, because only the start of a core calls it.
            #[must_use]
            #[inline(never)]
            pub fn policy(self) -> &'static dyn Policy {
                match self {
                    $(Self::$kind => &$policy,)*
                }
            }
        }
    };
}

kinds! {
    /// [`None`].
    #[default]
    None = 0, "none", None;
    /// [`Partition`].
    Partition = 1, "partition", Partition;
    /// [`OnDemand`].
    OnDemand = 2, "on-demand", OnDemand { wanders: true, is_recalled: true };
    /// [`TrapBased`], with the interrupt rule, and back when another vCPU wants
    /// the core.
    TrapBased = 3, "trap-based",
        TrapBased { interrupt_rule: true, returns_at_once: false, wanders: true };
    /// [`TrapBased`] as in PECCS 2012: no interrupt rule, and back at once.
    TrapBasedDeferred = 4, "trap-based-deferred",
        TrapBased { interrupt_rule: false, returns_at_once: true, wanders: true };
    /// [`SafeUnsafe`].
    SafeUnsafe = 5, "safe-unsafe", SafeUnsafe;
    /// [`Coscheduling`].
    Coscheduling = 6, "coscheduling", Coscheduling;
    /// [`Balance`].
    Balance = 7, "balance", Balance;
    /// [`RtVcpu`].
    RtVcpu = 8, "rt-vcpu", RtVcpu;
    /// [`TrapBased`], with the interrupt rule, and back at once.
    TrapBasedEager = 9, "trap-based-eager",
        TrapBased { interrupt_rule: true, returns_at_once: true, wanders: true };
    /// [`OnDemand`] with the paper's one core to go to: a control for the bench.
    OnDemandFixed = 10, "on-demand-fixed", OnDemand { wanders: false, is_recalled: true };
    /// [`OnDemand`] as in the thesis, with one core to go to and no recall: a control for the
    /// bench.
    OnDemandLazy = 11, "on-demand-lazy", OnDemand { wanders: false, is_recalled: false };
    /// [`TrapBased`] as in the thesis, with one core to go to: a control for the bench.
    TrapBasedPaper = 12, "trap-based-paper",
        TrapBased { interrupt_rule: false, returns_at_once: true, wanders: false };
    /// [`Delayed`], by calls.
    DelayedCall = 13, "delayed-call", Delayed { by: Request::Call };
    /// [`Delayed`], in memory.
    DelayedPage = 14, "delayed-page", Delayed { by: Request::Page };
    /// [`OnRequest`].
    OnRequest = 15, "on-request", OnRequest;
    /// [`Adaptive`].
    Adaptive = 16, "adaptive", Adaptive;
}

impl MigrationPolicy {
    /// Returns the policy that a system description calls so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if it is there only for a bench to compare others with it: a paper's policy
    /// without what was added here.
    #[must_use]
    pub const fn is_control(self) -> bool {
        matches!(self, Self::OnDemandFixed | Self::OnDemandLazy | Self::TrapBasedPaper)
    }

    /// Policies of which a VM may have one after another: all that they do is to answer when a vCPU is
    /// displaced ([`Answers`]).
    pub const SWITCHABLE: PolicySet = PolicySet::from_bits(
        1 << Self::None as u64
            | 1 << Self::OnDemand as u64
            | 1 << Self::Coscheduling as u64
            | 1 << Self::Balance as u64,
    );

    /// Returns true if it is one of [`Self::SWITCHABLE`].
    #[must_use]
    pub fn is_switchable(self) -> bool {
        Self::SWITCHABLE.has(self)
    }

    /// Returns true if a vCPU that displaces one of its vCPUs may have to wait.
    #[must_use]
    #[inline(never)]
    pub fn delays(self) -> bool {
        self.policy().delays(Mode::Kernel, true)
    }
}

/// Policies; in packed tables, a bit for each by its number.
pub type PolicySet = Set<MigrationPolicy>;

/// By its number.
impl Member for MigrationPolicy {
    #[inline]
    fn number(self) -> usize {
        self as usize
    }

    #[inline]
    fn numbered(number: usize) -> Self {
        Self::from_number(number as u16).unwrap_or_default()
    }

    #[inline(always)]
    fn loop_begins() {
        notes::begins::<{ u16::BITS as usize }, { each::ANYTHING }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<{ u16::BITS as usize }, { each::ANYTHING }>();
    }
}

#[cfg(test)]
mod tests;
