//! What is compared: the hypervisors, each with the settings that its own manual has for a real-time
//! guest on a core that it shares.

use serde::{Deserialize, Serialize};

/// A hypervisor with its settings, or the bare board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// No hypervisor: the real-time guest alone, or Linux alone.
    Board,
    /// Cassata.
    Cassata {
        /// What becomes of Linux's vCPU on the shared core.
        policy: Policy,
        /// How long before its timer the real-time guest gets its core.
        advance: Advance,
    },
    /// Xen with Linux as its first domain.
    Xen(Scheduler),
    /// Linux as KVM's host.
    Kvm(Kernel),
    /// Bao, under which Linux has a core fewer and the real-time guest one of its own.
    Bao,
}

/// A kernel of KVM's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Debian's.
    Debian,
    /// One with PREEMPT_RT, which Debian's with KVM is not.
    Realtime,
}

/// A timer advance of Cassata's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advance {
    None,
    /// The default.
    Default,
    /// At most the default, and no longer than its way takes.
    Adapted,
}

/// A migration policy of Cassata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    None,
    OnDemand,
}

/// A scheduler of Xen's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The default one, tuned.
    Credit2,
    /// The default one as it comes, but for the pinning.
    Credit2Untuned,
    /// The default one, tuned for Linux's throughput: Linux's vCPUs may leave the core that the guest takes.
    Credit2Throughput,
    /// The older one, tuned.
    Credit,
    /// The older one, tuned for Linux's throughput.
    CreditThroughput,
    /// The one for real time, which Debian's Xen does not have.
    Rtds,
}

/// A weight that gives a domain as much as the others of Xen's together, and more.
const MOST_WEIGHT: u32 = 65_535;

impl System {
    /// Every system there is, in the order of tables.
    pub const ALL: [Self; 16] = [
        Self::Board,
        Self::PLAIN,
        Self::ADVANCED,
        Self::ADAPTED,
        Self::Cassata { policy: Policy::OnDemand, advance: Advance::None },
        Self::Cassata { policy: Policy::OnDemand, advance: Advance::Default },
        Self::Cassata { policy: Policy::OnDemand, advance: Advance::Adapted },
        Self::Xen(Scheduler::Credit2),
        Self::Xen(Scheduler::Credit2Untuned),
        Self::Xen(Scheduler::Credit2Throughput),
        Self::Xen(Scheduler::Credit),
        Self::Xen(Scheduler::CreditThroughput),
        Self::Xen(Scheduler::Rtds),
        Self::KVM,
        Self::KVM_RT,
        Self::Bao,
    ];

    /// Cassata without a policy and without a timer advance: what the goals compare.
    pub const PLAIN: Self = Self::Cassata { policy: Policy::None, advance: Advance::None };
    /// Cassata with the timer advance.
    pub const ADVANCED: Self = Self::Cassata { policy: Policy::None, advance: Advance::Default };
    /// Cassata with one that is adapted.
    pub const ADAPTED: Self = Self::Cassata { policy: Policy::None, advance: Advance::Adapted };
    /// KVM on Debian's kernel.
    pub const KVM: Self = Self::Kvm(Kernel::Debian);
    /// KVM on a kernel with PREEMPT_RT.
    pub const KVM_RT: Self = Self::Kvm(Kernel::Realtime);

    /// Returns a name that no other system has, fit for a file.
    pub fn name(self) -> String {
        let name = match self {
            Self::Board => "board",
            Self::Cassata { policy, advance } => {
                return format!("cassata{}{}", policy.suffix(), advance.suffix());
            }
            Self::Xen(Scheduler::Credit2) => "xen-credit2",
            Self::Xen(Scheduler::Credit2Untuned) => "xen-credit2-untuned",
            Self::Xen(Scheduler::Credit2Throughput) => "xen-credit2-throughput",
            Self::Xen(Scheduler::Credit) => "xen-credit",
            Self::Xen(Scheduler::CreditThroughput) => "xen-credit-throughput",
            Self::Xen(Scheduler::Rtds) => "xen-rtds",
            Self::Kvm(Kernel::Debian) => "kvm",
            Self::Kvm(Kernel::Realtime) => "kvm-rt",
            Self::Bao => "bao",
        };
        name.into()
    }

    /// Returns the name in words.
    pub fn words(self) -> String {
        let words = match self {
            Self::Board => "bare board",
            Self::Cassata { policy, advance } => {
                let words = [policy.words(), advance.words()].map(|words| match words {
                    "" => String::new(),
                    words => format!(", {words}"),
                });
                return format!("Cassata{}", words.concat());
            }
            Self::Xen(Scheduler::Credit2) => "Xen, credit2",
            Self::Xen(Scheduler::Credit2Untuned) => "Xen, credit2 untuned",
            Self::Xen(Scheduler::Credit2Throughput) => "Xen, credit2 for throughput",
            Self::Xen(Scheduler::Credit) => "Xen, credit",
            Self::Xen(Scheduler::CreditThroughput) => "Xen, credit for throughput",
            Self::Xen(Scheduler::Rtds) => "Xen, RTDS",
            Self::Kvm(Kernel::Debian) => "KVM",
            Self::Kvm(Kernel::Realtime) => "KVM, PREEMPT_RT",
            Self::Bao => "Bao, a core of its own",
        };
        words.into()
    }

    /// Returns true if it is none of ours and shares a core between Linux and the real-time guest, which
    /// is what the goals compare.
    pub const fn is_peer(self) -> bool {
        matches!(self, Self::Xen(_) | Self::Kvm(_))
    }

    /// Returns the settings that makes it fit for real time, in words.
    pub fn settings(self) -> String {
        let settings = match self {
            Self::Board => "none",
            Self::Cassata { policy: Policy::None, advance: Advance::None } => {
                "realtime = true, priority 10 above 1, timer_advance = \"0us\""
            }
            Self::Cassata { policy: Policy::None, advance: Advance::Default } => {
                "realtime = true, priority 10 above 1, timer_advance as it is by default"
            }
            Self::Cassata { policy: Policy::None, advance: Advance::Adapted } => {
                "as Cassata with timer advance, adapt_timer_advance = true"
            }
            Self::Cassata { policy: Policy::OnDemand, advance } => {
                let with = match advance.words() {
                    "" => String::new(),
                    words => format!(" with {words}"),
                };
                return format!("as Cassata{with}, migration_policy = \"on-demand\"");
            }
            Self::Xen(Scheduler::Credit2) => {
                "sched=credit2 sched_ratelimit_us=0 dom0_vcpus_pin, the guest pinned, weight 65535"
            }
            Self::Xen(Scheduler::Credit2Untuned) => {
                "sched=credit2 dom0_vcpus_pin, the guest pinned"
            }
            Self::Xen(Scheduler::Credit2Throughput) => {
                "sched=credit2, the default rate limit, Linux not pinned, the guest pinned, weight \
                 65535"
            }
            Self::Xen(Scheduler::Credit) => {
                "sched=credit sched_ratelimit_us=0 sched_credit_tslice_ms=1 dom0_vcpus_pin, the \
                 guest pinned, weight 65535"
            }
            Self::Xen(Scheduler::CreditThroughput) => {
                "sched=credit, the default rate limit and time slice, Linux not pinned, the guest \
                 pinned, weight 65535"
            }
            Self::Xen(Scheduler::Rtds) => {
                "sched=rtds dom0_vcpus_pin, the guest pinned, its period that of its activations, \
                 its budget what it burns and a fifth of the period"
            }
            Self::Kvm(Kernel::Debian) => {
                "vCPU thread SCHED_FIFO 90, pinned, mlockall, kernel.sched_rt_runtime_us=-1"
            }
            Self::Kvm(Kernel::Realtime) => "as KVM, on a kernel with PREEMPT_RT",
            Self::Bao => {
                "cpu_affinity: Linux on all cores but the last, the guest on that; the UART's \
                 interrupt is Linux's"
            }
        };
        settings.into()
    }
}

impl Advance {
    /// Returns what stands of it in a system's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Default => "-advance",
            Self::Adapted => "-adapted",
        }
    }

    /// Returns it in words; nothing, if there is none.
    const fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Default => "timer advance",
            Self::Adapted => "adapted timer advance",
        }
    }

    /// Returns the line of a real-time VM's description.
    pub const fn line(self) -> &'static str {
        match self {
            Self::None => "timer_advance = \"0us\"\n",
            Self::Default => "",
            Self::Adapted => "adapt_timer_advance = true\n",
        }
    }
}

impl Policy {
    /// Returns what stands of it in a system's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::OnDemand => "-on-demand",
        }
    }

    /// Returns it in words; nothing, if there is none.
    const fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::OnDemand => "on-demand",
        }
    }

    /// Returns the line of a VM's description.
    pub const fn line(self) -> &'static str {
        match self {
            Self::None => "",
            Self::OnDemand => "migration_policy = \"on-demand\"\n",
        }
    }
}

impl Scheduler {
    /// Returns true if it is tuned for Linux's throughput, whatever becomes of its real-time guest.
    pub const fn is_for_throughput(self) -> bool {
        matches!(self, Self::Credit2Throughput | Self::CreditThroughput)
    }

    /// Returns what Xen's command line says of it.
    pub const fn boot(self) -> &'static str {
        match self {
            Self::Credit2 => "sched=credit2 sched_ratelimit_us=0",
            Self::Credit2Untuned | Self::Credit2Throughput => "sched=credit2",
            Self::Credit => "sched=credit sched_ratelimit_us=0 sched_credit_tslice_ms=1",
            Self::CreditThroughput => "sched=credit",
            Self::Rtds => "sched=rtds",
        }
    }

    /// Returns what Xen's command line says of the vCPUs of its first domain, which is Linux: by default they
    /// run on any core.
    pub const fn first_domain(self) -> &'static str {
        match self {
            Self::Credit2Throughput | Self::CreditThroughput => "",
            Self::Credit2 | Self::Credit2Untuned | Self::Credit | Self::Rtds => "dom0_vcpus_pin ",
        }
    }

    /// Returns what `tune` in Linux is told, for a guest with this period that burns so much in it.
    pub fn tune(self, period_us: u64, burn_us: u64) -> String {
        match self {
            Self::Credit2 | Self::Credit2Throughput => format!("credit2 {MOST_WEIGHT}"),
            Self::Credit2Untuned => "credit2 0".into(),
            Self::Credit | Self::CreditThroughput => format!("credit {MOST_WEIGHT}"),
            Self::Rtds => {
                let budget_us = (burn_us + period_us / 5).min(period_us);
                format!("rtds {period_us} {budget_us}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_are_called_alike() {
        let names: BTreeSet<_> = System::ALL.iter().map(|system| system.name()).collect();
        let words: BTreeSet<_> = System::ALL.iter().map(|system| system.words()).collect();
        assert_eq!((names.len(), words.len()), (System::ALL.len(), System::ALL.len()));
    }

    #[test]
    fn cassata_is_called_by_its_policy_and_its_advance() {
        let name = System::PLAIN.name();
        assert_eq!((name.as_str(), System::PLAIN.words().as_str()), ("cassata", "Cassata"));
        let all = System::Cassata { policy: Policy::OnDemand, advance: Advance::Adapted };
        assert_eq!(all.name(), "cassata-on-demand-adapted");
        assert_eq!(all.words(), "Cassata, on-demand, adapted timer advance");
        let settings = "as Cassata with adapted timer advance, migration_policy = \"on-demand\"";
        assert_eq!(all.settings(), settings);
    }

    #[test]
    fn what_the_book_says_of_xen_is_what_xen_is_told() {
        for system in System::ALL {
            let System::Xen(scheduler) = system else { continue };
            let (settings, name) = (system.settings(), system.name());
            assert!(settings.starts_with(scheduler.boot()), "{name}");
            let is_pinned = !settings.contains("Linux not pinned");
            assert_eq!(settings.contains("dom0_vcpus_pin"), is_pinned, "{name}");
            assert_eq!(scheduler.first_domain() == "dom0_vcpus_pin ", is_pinned, "{name}");
            let limit = "the default rate limit";
            assert!(is_pinned || settings.contains(limit), "{name}");
            assert!(!settings.contains(limit) || !scheduler.boot().contains("ratelimit"), "{name}");
        }
        assert_eq!(Scheduler::Rtds.tune(1_000, 0), "rtds 1000 200");
        assert_eq!(Scheduler::Rtds.tune(10_000, 9_000), "rtds 10000 10000");
        assert_eq!(Scheduler::Credit2.tune(1_000, 0), "credit2 65535");
    }
}
