//! What becomes of a vCPU when another one takes its core.
//!
//! A vCPU of a VM with several may hold a lock for which its siblings spin. When a
//! vCPU of higher priority takes its core, they spin until it gets the core back:
//! lock holder preemption. A [`Policy`] decides what to do about that. It says beforehand
//! what EL2 has to do at a few moments; it uses no register, and does not depend on other
//! policies. A new one is a file beside these, and a line in [`MigrationPolicy`].
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

pub use adaptive::{Activations, Choice, Patience};
pub use mode_bias::ModeBias;
pub use rotation::{Stay, next_in_rotation};

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

/// What a policy says when a vCPU is displaced, for each [`Displaced`], in one word: a VM whose
/// policy changes has another word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers(u32);

impl Answers {
    /// Bits of an answer.
    const WIDTH: usize = 8;

    /// Says the same of every vCPU.
    #[must_use]
    pub const fn always(then: Then) -> Self {
        Self::says(then, [true; Displaced::ALL.len()])
    }

    /// Says so of a vCPU that could run; one that sleeps stays.
    #[must_use]
    pub const fn if_ready(then: Then) -> Self {
        Self::says(then, [false, true, false, true])
    }

    /// Says so of a vCPU that could run, while another core has nothing to run; else it stays.
    #[must_use]
    pub const fn if_ready_and_a_core_idles(then: Then) -> Self {
        Self::says(then, [false, false, false, true])
    }

    /// Says so of some of [`Displaced::ALL`], and of the others that they stay.
    const fn says(then: Then, of: [bool; Displaced::ALL.len()]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < of.len() {
            let says = if of[index] { then } else { Then::Stay };
            bits |= (says as u32) << (index * Self::WIDTH);
            index += 1;
        }
        Self(bits)
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
    /// Not on purpose: its kernel counts what keeps its threads from being preempted, and EL2 reads that.
    Peek,
    /// By masking its interrupts.
    Mask,
}

impl Request {
    /// Returns how often EL2 looks whether a guest still asks, nanoseconds, while another vCPU waits; none if
    /// it tells when it asks no longer.
    #[must_use]
    pub const fn looked_at_each_ns(self) -> Option<u64> {
        match self {
            Self::None | Self::Call | Self::Page => Option::None,
            Self::Peek => Some(2_000),
            Self::Mask => Some(1_000),
        }
    }
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
#[repr(u8)]
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

/// See the module. A policy is what it says, so that one more costs EL2 no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The vCPUs are always at their fallbacks, and never at their bases.
    lives_at_fallback: bool,
    /// It is for a real-time VM, whose vCPUs make way for higher priorities.
    for_realtime: bool,
    /// A vCPU that leaves goes to its fallback, whether another core is idle or not, and stays there.
    keeps_to_fallback: bool,
    /// A vCPU that is away goes back to its base without a recall, provided that its base is free:
    /// when it sleeps, and when it has lost the core to another vCPU.
    returns_by_itself: bool,
    /// The vCPUs go where their guest or an operator asks them to go, and stay there.
    moves_on_request: bool,
    /// A vCPU goes back to its base that is away, in a program, and has lost the core to another vCPU,
    /// provided that its base is free and that it is mostly in programs ([`ModeBias`]).
    makes_room: bool,
    /// A vCPU that displaces one of its vCPUs waits while that is in its kernel.
    delays_for_kernel: bool,
    /// How a guest asks that one that displaces its vCPU wait.
    request: Request,
    /// What becomes of a vCPU that is displaced now. The vCPU that displaces it is loaded.
    displaced: Answers,
    /// What becomes of a vCPU that is displaced and at its base, when an interrupt comes for it;
    /// see [`Needs::notices_interrupts`].
    interrupted: Then,
    /// The view of its vCPUs away from their base, and at it.
    views: [View; 2],
    /// Where a vCPU goes on that was about to execute a program, or its kernel, which its view forbids.
    crossed: [Side; 2],
}

impl Policy {
    /// Does nothing. Others say in what they differ from it.
    const NONE: Self = Self {
        lives_at_fallback: false,
        for_realtime: false,
        keeps_to_fallback: false,
        returns_by_itself: false,
        moves_on_request: false,
        makes_room: false,
        delays_for_kernel: false,
        request: Request::None,
        displaced: Answers::always(Then::Stay),
        interrupted: Then::Stay,
        views: [View::Full; 2],
        crossed: [Side::Here; 2],
    };

    /// Returns what becomes of each vCPU that is displaced.
    #[must_use]
    #[inline]
    pub const fn answers(&self) -> Answers {
        self.displaced
    }

    /// Decides about a vCPU that is displaced now. The vCPU that displaces it is loaded.
    #[must_use]
    #[inline]
    pub const fn displaced(&self, vcpu: Displaced) -> Then {
        self.displaced.when(vcpu)
    }

    /// Decides about a vCPU that is displaced and at its base, when an interrupt comes for it;
    /// see [`Needs::notices_interrupts`].
    #[must_use]
    #[inline]
    pub const fn interrupted(&self) -> Then {
        self.interrupted
    }

    /// Returns the view of its vCPUs at their base, or elsewhere.
    #[must_use]
    #[inline]
    pub const fn view(&self, at_base: bool) -> View {
        self.views[at_base as usize]
    }

    /// Returns true if a vCPU goes back to its base that is away, in this mode, and has lost
    /// the core to another vCPU, provided that its base is free and that it is mostly in
    /// programs ([`ModeBias`]).
    #[must_use]
    #[inline]
    pub const fn makes_room(&self, mode: Mode) -> bool {
        self.makes_room && matches!(mode, Mode::User)
    }

    /// Decides where a vCPU goes on that was about to execute what its [view](Self::view)
    /// forbids.
    #[must_use]
    #[inline]
    pub const fn crossed(&self, into: Mode) -> Side {
        self.crossed[into as usize]
    }

    /// Returns true if a vCPU that displaces one of its vCPUs, which is ready and in this mode,
    /// should wait. `asks`: the guest asks not to be preempted, as [`Self::request`] says.
    #[must_use]
    #[inline]
    pub const fn delays(&self, mode: Mode, asks: bool) -> bool {
        self.delays_for_kernel && matches!(mode, Mode::Kernel)
            || asks && !matches!(self.request, Request::None)
    }

    /// Returns how a guest asks not to be preempted.
    #[must_use]
    #[inline]
    pub const fn request(&self) -> Request {
        self.request
    }

    /// Derives what the policy needs from what it says; [`MigrationPolicy::needs`] has that of each.
    const fn needs(&self) -> Needs {
        let mut given = Given::of(self.interrupted);
        let notices_interrupts = given.any;
        let (mut leaves_when_displaced, mut index) = (false, 0);
        while index < Displaced::ALL.len() {
            let answer = Given::of(self.displaced.when(Displaced::ALL[index]));
            leaves_when_displaced |= answer.to_fallback || answer.to_idle;
            given = given.or(answer);
            index += 1;
        }
        let asks_base = self.returns_by_itself || self.makes_room;
        let delays = self.delays_for_kernel || !matches!(self.request, Request::None);
        let to_fallback =
            given.to_fallback || matches!(self.crossed, [Side::Fallback, _] | [_, Side::Fallback]);
        Needs {
            a_say: given.any || delays || asks_base,
            fallback: self.lives_at_fallback || to_fallback,
            lives_at_fallback: self.lives_at_fallback,
            wanders: (to_fallback || given.to_idle)
                && !self.keeps_to_fallback
                && !self.for_realtime,
            asks_base,
            returns_by_itself: self.returns_by_itself,
            leaves_when_displaced,
            views: self.delays_for_kernel || !matches!(self.views, [View::Full, View::Full]),
            notices_interrupts,
            for_realtime: self.for_realtime,
            moves_on_request: self.moves_on_request,
            observes: given.observes,
        }
    }
}

/// Which answers a policy gives.
#[derive(Clone, Copy)]
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
    const fn of(then: Then) -> Self {
        let observes = matches!(then, Then::LeaveIfItPays);
        Self {
            any: !matches!(then, Then::Stay),
            to_fallback: observes || matches!(then, Then::Leave | Then::LeaveUntilFree),
            to_idle: matches!(then, Then::LeaveForIdle),
            observes,
        }
    }

    const fn or(self, other: Self) -> Self {
        Self {
            any: self.any || other.any,
            to_fallback: self.to_fallback || other.to_fallback,
            to_idle: self.to_idle || other.to_idle,
            observes: self.observes || other.observes,
        }
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
    let concerns = if kind.needs().for_realtime { loser } else { winner };
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
            /// All of them, each at its number, as in the tables below.
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

            /// Returns the policy itself.
            #[must_use]
            #[inline]
            pub const fn policy(self) -> &'static Policy {
                const POLICIES: &[Policy] = &[$($policy,)*];
                &POLICIES[self as usize]
            }

            /// Returns what the policy needs.
            #[must_use]
            #[inline]
            pub const fn needs(self) -> Needs {
                const NEEDS: &[Needs] = &[$($policy.needs(),)*];
                NEEDS[self as usize]
            }
        }
    };
}

const _: () = {
    let mut number = 0;
    while number < MigrationPolicy::ALL.len() {
        assert!(MigrationPolicy::ALL[number] as usize == number, "policies stand in their order");
        number += 1;
    }
};

kinds! {
    /// [`mod@none`].
    #[default]
    None = 0, "none", none::POLICY;
    /// [`mod@partition`].
    Partition = 1, "partition", partition::POLICY;
    /// [`mod@on_demand`].
    OnDemand = 2, "on-demand", on_demand::POLICY;
    /// [`mod@trap_based`], with the interrupt rule, and back when another vCPU wants
    /// the core.
    TrapBased = 3, "trap-based", trap_based::POLICY;
    /// [`mod@trap_based`] as in PECCS 2012: no interrupt rule, and back at once.
    TrapBasedDeferred = 4, "trap-based-deferred", trap_based::DEFERRED;
    /// [`mod@safe_unsafe`].
    SafeUnsafe = 5, "safe-unsafe", safe_unsafe::POLICY;
    /// [`mod@coscheduling`].
    Coscheduling = 6, "coscheduling", coscheduling::POLICY;
    /// [`mod@balance`].
    Balance = 7, "balance", balance::POLICY;
    /// [`mod@rt_vcpu`].
    RtVcpu = 8, "rt-vcpu", rt_vcpu::POLICY;
    /// [`mod@trap_based`], with the interrupt rule, and back at once.
    TrapBasedEager = 9, "trap-based-eager", trap_based::EAGER;
    /// [`mod@on_demand`] with the paper's one core to go to: a control for the bench.
    OnDemandFixed = 10, "on-demand-fixed", on_demand::FIXED;
    /// [`mod@on_demand`] as in the thesis, with one core to go to and no recall: a control for the
    /// bench.
    OnDemandLazy = 11, "on-demand-lazy", on_demand::LAZY;
    /// [`mod@trap_based`] as in the thesis, with one core to go to: a control for the bench.
    TrapBasedPaper = 12, "trap-based-paper", trap_based::PAPER;
    /// [`mod@delayed`], by calls.
    DelayedCall = 13, "delayed-call", delayed::by(Request::Call);
    /// [`mod@delayed`], in memory.
    DelayedPage = 14, "delayed-page", delayed::by(Request::Page);
    /// [`mod@on_request`].
    OnRequest = 15, "on-request", on_request::POLICY;
    /// [`mod@adaptive`].
    Adaptive = 16, "adaptive", adaptive::POLICY;
    /// [`mod@delayed`], by what an unmodified kernel counts.
    DelayedPeek = 17, "delayed-peek", delayed::by(Request::Peek);
    /// [`mod@delayed`], while the guest masks its interrupts: a control for the bench.
    Masked = 18, "masked", delayed::by(Request::Mask);
}

impl MigrationPolicy {
    /// Returns the policy that a system description calls so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Returns true if it is there only for a bench to compare others with it: a paper's policy
    /// without what was added here, or what a paper improves on.
    #[must_use]
    pub const fn is_control(self) -> bool {
        matches!(
            self,
            Self::OnDemandFixed | Self::OnDemandLazy | Self::TrapBasedPaper | Self::Masked
        )
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
    #[inline]
    pub const fn delays(self) -> bool {
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
        notes::begins::<{ u32::BITS as usize }, { each::ANYTHING }>();
    }

    #[inline(always)]
    fn loop_passes() {
        notes::passes::<{ u32::BITS as usize }, { each::ANYTHING }>();
    }
}

#[cfg(test)]
mod tests;
