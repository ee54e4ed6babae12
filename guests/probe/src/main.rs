//! The probe: a bare-metal guest that exists to test the hypervisor.
//!
//! It runs at EL1 on plain QEMU (`-M virt,gic-version=3`), the reference that
//! keeps the tests themselves honest, and under Cassata. What it does, the
//! command line in its device tree says: `probe.run=` and a list of groups,
//! single tests or roles, `all` for all tests. Other words of the form
//! `probe.NAME=VALUE` are read by the tests and roles they concern.

#![no_std]
#![no_main]

#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
compile_error!("the probe is bare-metal: build it with --target aarch64-unknown-none-softfloat");

mod adversary;
mod arch;
mod calls;
mod console;
mod cpus;
mod gic;
mod irq;
mod pci;
mod platform;
mod random;
mod roles;
mod suite;
mod tests;
mod timer;
mod wait;

use aarch64_rt::entry;

entry!(main);

fn main(device_tree: u64, _x1: u64, _x2: u64, _x3: u64) -> ! {
    tests::boot::look_at_start();
    let platform = match platform::discover(device_tree) {
        Ok(platform) => platform,
        Err(why) => {
            println!("FAIL start: {why}");
            calls::system_off();
        }
    };
    let host = if platform.cassata { "Cassata" } else { "the reference machine" };
    println!("probe on {host}, {} vCPUs, {} MiB", platform.vcpus.len(), platform.ram_size >> 20);
    adversary::at_entry();
    suite::run(
        tests::ALL,
        &[roles::ALL, roles::calibrate::ALL, adversary::ALL],
        platform.argument("run").unwrap_or("all"),
    );
    suite::finish()
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    suite::abort(format_args!("{info}"))
}
