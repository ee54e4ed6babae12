//! Tests of the hypervisor on a machine, with the probe guest.
//!
//! | module | story |
//! | --- | --- |
//! | [`expect`] | what is expected of each VM, and whether that has come |
//! | [`staged`] | a system description from `guests/probe/systems`, booted and judged |
//! | [`moved`] | vCPUs that migrate while something else happens, under each policy |
//! | [`gathered`] | cores that are powered down while there is little to do |
//! | [`budgets`] | what vCPUs with budgets get in every period |
//! | [`overrun`] | what a vCPU has that begins critical sections only to have more |
//! | [`stock`] | stock Linux under each policy, beside an RTOS and a neighbour that crashes |
//! | [`debian`] | stock Debian on a disk, with a network, beside FreeRTOS |
//! | [`locks`] | what Linux tells the hypervisor of its locks |
//! | [`preemption`] | Linux whose preemption is delayed, or that yields, beside an RTOS |
//! | [`sharing_linux`] | Linux and FreeRTOS share a mutex and a page |
//! | [`cycles`] | Linux counts its own cycles |
//! | [`conformance`] | guests and tests that others wrote |
//! | [`mod@reference`] | the probe without a hypervisor, which keeps its tests honest |
//! | [`damaged`] | systems that EL2 must refuse |
//! | [`campaign`] | a bench on more machines than one brings what it brings on one |
//! | [`boards`] | boards that people own, in QEMU's models of them |
//! | [`boot_loader`] | U-Boot starts what is packed for boot loaders |
//! | [`signed`] | a hypervisor that has a key, and what it must refuse |
//! | [`fault`] | a fault of EL2's own, and what goes on |
//! | [`gaps`] | the detector of gaps, and gaps that are made |
//! | `calibrate` | what a guest measures of EL2, where it is known, and logs of boards |
//! | [`hang`] | a core that hangs at EL2, and which one says so |
//! | `reason` | why a machine ended |
//! | [`limits`] | runs that never end |
//! | [`traced`] | what EL2 records agrees with what it counts |
//! | [`traced_guests`] | what guests record of themselves agrees with what they count, and with EL2 |
//! | [`perfetto`] | what Perfetto says of the same |
//! | [`typed`] | what is typed reaches the guest it is meant for |
//! | [`operated`] | an operator changes a system while it runs |
//! | `virtio` | a Linux without devices gets them from another one |
//! | [`console`] | people and programs that have a guest's console |
//! | [`sharing`] | FreeRTOS guests that share a page under a mutex |
//! | `io_load` | FreeRTOS beside a loaded disk and network |
//! | [`list`] | all of them |
//! | `long` | those that take long, and what each is worth it for |
//!
//! Systems of ours run in virtual time, so that a busy computer changes nothing, and each
//! states how much of it is enough: a guest that hangs ends its scenario at the same instant
//! in every run. The reference runs in real time, as it asks for no more than order; so do
//! users of consoles.

mod board_devices;
mod boards;
mod boot_loader;
pub mod budgets;
mod calibrate;
pub mod campaign;
pub mod conformance;
pub mod console;
pub mod cycles;
pub mod damaged;
pub mod debian;
mod dma;
mod embassy;
pub mod expect;
pub mod fault;
pub mod gaps;
pub mod gathered;
pub mod hang;
mod io_load;
pub mod limits;
mod links;
pub mod list;
pub mod locks;
mod long;
pub mod moved;
pub mod operated;
pub mod overrun;
pub mod perfetto;
pub mod preemption;
mod reason;
pub mod reference;
pub mod sharing;
pub mod sharing_linux;
pub mod signed;
pub mod staged;
pub mod stock;
pub mod traced;
pub mod traced_guests;
pub mod typed;
mod virtio;

pub use list::all;

use std::time::Duration;

/// Virtual time within which a scenario comes to its end, unless it states another: the
/// longest needs three seconds.
const LIMIT: Duration = Duration::from_secs(6);
/// Real time within which a machine that lives in it comes to its end, or a user at a console
/// has an answer: a busy host may take many times as long as an idle one.
const REAL_LIMIT: Duration = Duration::from_secs(600);
