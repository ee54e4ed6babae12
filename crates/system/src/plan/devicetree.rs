//! The device tree each guest finds: the virtual platform
//! ([`abi::platform`]), its memory, and what was passed through to it.

mod pci;
mod tasks;

use crate::board::{Device, Gic, Property, Trigger};
use crate::model::{Back, Front, LinkEnd, SharedMemory, Vm};
use abi::platform::{
    GICC_BASE, GICC_PAGE, GICD_BASE, GICD_SIZE, GICD_V2_SIZE, GICR_BASE, GICR_STRIDE, REPORT_BASE,
    SPI_FIRST, UART_BASE, UART_CLOCK_HZ, UART_INTID, UART_SIZE, ppi::GRANT,
};
use abi::service;
use abi::system::Region;
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use vm_fdt::{Error, FdtWriter};

const GIC: u32 = 1;
const CLOCK: u32 = 2;
/// First cell of an interrupt: shared, or one core's own.
const SPI: u32 = 0;
const PPI: u32 = 1;
/// First INTID of the interrupts of one core.
const PPI_FIRST: u32 = 16;
/// Third cell of an interrupt.
const EDGE_RISING: u32 = 1;
const LEVEL_HIGH: u32 = 4;
/// PPI numbers of the generic timer: secure and non-secure EL1 physical,
/// virtual, EL2 physical. The binding wants all four; the virtual one is what
/// a guest at EL1 uses.
const TIMERS: [u32; 4] = [13, 14, 11, 10];

/// The device tree of a VM whose memory is `ram` for the guest, and whose interrupt controller is of the
/// version of the board's.
pub(crate) fn build(vm: &Vm, gic: Gic, ram: Region, initramfs: Option<Region>) -> Vec<u8> {
    write(vm, gic, ram, initramfs).expect("names and strings have been checked")
}

fn write(vm: &Vm, gic: Gic, ram: Region, initramfs: Option<Region>) -> Result<Vec<u8>, Error> {
    let mut fdt = FdtWriter::new()?;
    node(&mut fdt, "", |fdt| {
        fdt.property_u32("#address-cells", 2)?;
        fdt.property_u32("#size-cells", 2)?;
        fdt.property_u32("interrupt-parent", GIC)?;
        strings(fdt, "compatible", &["cassata,virtual-platform"])?;
        fdt.property_string("model", &format!("Cassata VM {}", vm.name))?;
        chosen(fdt, vm, initramfs)?;
        node(fdt, &unit("memory", ram.start), |fdt| {
            fdt.property_string("device_type", "memory")?;
            reg(fdt, &[ram])
        })?;
        cpus(fdt, vm.vcpus.len())?;
        core_services(fdt)?;
        interrupt_controller(fdt, gic, vm.vcpus.len())?;
        let rates = Rates::of(&vm.devices);
        clock(fdt, "clock", UART_CLOCK_HZ, CLOCK)?;
        rates.write(fdt)?;
        if vm.console {
            console(fdt)?;
        }
        vm.devices.iter().try_for_each(|device| passed_through(fdt, device, &rates))?;
        cassata(fdt, vm)?;
        tasks::write(fdt, &vm.tasks)
    })?;
    fdt.finish()
}

type Written = Result<(), Error>;

fn node(fdt: &mut FdtWriter, name: &str, fill: impl FnOnce(&mut FdtWriter) -> Written) -> Written {
    let node = fdt.begin_node(name)?;
    fill(fdt)?;
    fdt.end_node(node)
}

fn unit(name: &str, address: u64) -> String {
    format!("{name}@{address:x}")
}

fn strings(fdt: &mut FdtWriter, name: &str, values: &[&str]) -> Written {
    fdt.property_string_list(name, values.iter().map(ToString::to_string).collect())
}

fn reg(fdt: &mut FdtWriter, regions: &[Region]) -> Written {
    let cells: Vec<_> = regions.iter().flat_map(|region| [region.start, region.size]).collect();
    fdt.property_array_u64("reg", &cells)
}

fn chosen(fdt: &mut FdtWriter, vm: &Vm, initramfs: Option<Region>) -> Written {
    let serial = format!("/{}", unit("serial", UART_BASE));
    if vm.console {
        node(fdt, "aliases", |fdt| fdt.property_string("serial0", &serial))?;
    }
    node(fdt, "chosen", |fdt| {
        if vm.console {
            fdt.property_string("stdout-path", &serial)?;
        }
        fdt.property_string("bootargs", &vm.cmdline)?;
        if let Some(seed) = vm.seed {
            fdt.property("rng-seed", &random_bytes(seed))?;
        }
        if let Some(region) = initramfs {
            fdt.property_u64("linux,initrd-start", region.start)?;
            fdt.property_u64("linux,initrd-end", region.start + region.size)?;
        }
        Ok(())
    })
}

/// What a boot loader would have collected, from one number: the same on every
/// computer and in every version.
fn random_bytes(seed: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

fn cpus(fdt: &mut FdtWriter, count: usize) -> Written {
    node(fdt, "cpus", |fdt| {
        fdt.property_u32("#address-cells", 1)?;
        fdt.property_u32("#size-cells", 0)?;
        (0..count as u32).try_for_each(|index| {
            node(fdt, &unit("cpu", index.into()), |fdt| {
                fdt.property_string("device_type", "cpu")?;
                fdt.property_string("compatible", "arm,armv8")?;
                fdt.property_u32("reg", index)?;
                fdt.property_string("enable-method", "psci")
            })
        })
    })
}

/// PSCI, the generic timer, and the performance monitors, which have no interrupt.
fn core_services(fdt: &mut FdtWriter) -> Written {
    node(fdt, "psci", |fdt| {
        strings(fdt, "compatible", &["arm,psci-1.0", "arm,psci-0.2"])?;
        fdt.property_string("method", "hvc")
    })?;
    node(fdt, "timer", |fdt| {
        fdt.property_string("compatible", "arm,armv8-timer")?;
        fdt.property_null("always-on")?;
        let cells: Vec<_> = TIMERS.iter().flat_map(|&ppi| [PPI, ppi, LEVEL_HIGH]).collect();
        fdt.property_array_u32("interrupts", &cells)
    })?;
    node(fdt, "pmu", |fdt| fdt.property_string("compatible", "arm,armv8-pmuv3"))
}

fn interrupt_controller(fdt: &mut FdtWriter, gic: Gic, vcpus: usize) -> Written {
    node(fdt, &unit("interrupt-controller", GICD_BASE), |fdt| {
        let (compatible, distributor, of_vcpus) = match gic {
            Gic::V3(_) => {
                ("arm,gic-v3", GICD_SIZE, Region::new(GICR_BASE, GICR_STRIDE * vcpus as u64))
            }
            Gic::V2(_) => ("arm,gic-400", GICD_V2_SIZE, Region::new(GICC_BASE, 2 * GICC_PAGE)),
        };
        fdt.property_string("compatible", compatible)?;
        reg(fdt, &[Region::new(GICD_BASE, distributor), of_vcpus])?;
        fdt.property_null("interrupt-controller")?;
        fdt.property_u32("#interrupt-cells", 3)?;
        fdt.property_u32("#address-cells", 0)?;
        fdt.property_phandle(GIC)
    })
}

fn clock(fdt: &mut FdtWriter, name: &str, rate_hz: u32, phandle: u32) -> Written {
    node(fdt, name, |fdt| {
        fdt.property_string("compatible", "fixed-clock")?;
        fdt.property_u32("#clock-cells", 0)?;
        fdt.property_u32("clock-frequency", rate_hz)?;
        fdt.property_phandle(phandle)
    })
}

/// The rates of clocks that devices of the board have, Hz, each once, from the slowest. The phandles of the clocks
/// follow [`CLOCK`].
struct Rates(Vec<u32>);

impl Rates {
    fn of(devices: &[&Device]) -> Self {
        let mut rates: Vec<_> =
            devices.iter().flat_map(|device| &device.clock_hz).copied().collect();
        rates.sort_unstable();
        rates.dedup();
        Self(rates)
    }

    fn phandle(&self, rate_hz: u32) -> u32 {
        CLOCK + 1 + self.0.partition_point(|&other| other < rate_hz) as u32
    }

    fn write(&self, fdt: &mut FdtWriter) -> Written {
        let mut rates = self.0.iter();
        rates.try_for_each(|&rate| clock(fdt, &format!("clock-{rate}"), rate, self.phandle(rate)))
    }

    /// Returns the phandles of the clocks of a device's inputs.
    fn clocks(&self, device: &Device) -> Vec<u32> {
        match &device.clock_hz[..] {
            [] => vec![CLOCK; device.clocks.len()],
            rates => rates.iter().map(|&rate| self.phandle(rate)).collect(),
        }
    }
}

/// References to clocks, and the names of the inputs that they feed.
fn clocks(fdt: &mut FdtWriter, phandles: &[u32], inputs: &[&str]) -> Written {
    if inputs.is_empty() {
        return Ok(());
    }
    fdt.property_array_u32("clocks", phandles)?;
    strings(fdt, "clock-names", inputs)
}

fn console(fdt: &mut FdtWriter) -> Written {
    node(fdt, &unit("serial", UART_BASE), |fdt| {
        strings(fdt, "compatible", &["arm,pl011", "arm,primecell"])?;
        reg(fdt, &[Region::new(UART_BASE, UART_SIZE)])?;
        fdt.property_array_u32("interrupts", &[SPI, UART_INTID - SPI_FIRST, LEVEL_HIGH])?;
        clocks(fdt, &[CLOCK; 2], &["uartclk", "apb_pclk"])
    })
}

fn passed_through(fdt: &mut FdtWriter, device: &Device, rates: &Rates) -> Written {
    let name = device.node.as_ref().unwrap_or(&device.name);
    node(fdt, &unit(name, device.address), |fdt| {
        let compatible: Vec<_> = device.compatible.iter().map(String::as_str).collect();
        strings(fdt, "compatible", &compatible)?;
        reg(fdt, &[device.registers()])?;
        let interrupt = |irq: &crate::board::Interrupt| {
            let trigger = match irq.trigger {
                Trigger::Edge => EDGE_RISING,
                Trigger::Level => LEVEL_HIGH,
            };
            [SPI, irq.intid - SPI_FIRST, trigger]
        };
        let cells: Vec<_> = device.interrupts.iter().flat_map(interrupt).collect();
        if let Some(window) = device.window {
            pci::host_bridge(fdt, window, &cells)?;
        } else if !cells.is_empty() {
            fdt.property_array_u32("interrupts", &cells)?;
        }
        let inputs: Vec<_> = device.clocks.iter().map(String::as_str).collect();
        clocks(fdt, &rates.clocks(device), &inputs)?;
        device.properties.iter().try_for_each(|(name, value)| match value {
            Property::Flag(true) => fdt.property_null(name),
            Property::Flag(false) => Ok(()),
            Property::Cell(cell) => fdt.property_u32(name, *cell),
            Property::Cells(cells) => fdt.property_array_u32(name, cells),
            Property::Text(text) => fdt.property_string(name, text),
        })
    })
}

/// What Cassata adds: its calls, the report area, memory that VMs share, links, and virtio devices.
fn cassata(fdt: &mut FdtWriter, vm: &Vm) -> Written {
    node(fdt, "cassata", |fdt| {
        let (major, minor) = service::REVISION;
        let revisions = (0..=minor).rev().map(|minor| format!("cassata,service-{major}.{minor}"));
        let revisions: Vec<_> = revisions.collect();
        let revisions: Vec<_> = revisions.iter().map(String::as_str).collect();
        strings(fdt, "compatible", &revisions)?;
        fdt.property_string("method", "hvc")?;
        if vm.has_mutexes {
            // EL2 posts it: it is pending until it is taken, as an edge.
            fdt.property_array_u32("interrupts", &[PPI, GRANT - PPI_FIRST, EDGE_RISING])?;
            strings(fdt, "interrupt-names", &["mutex"])?;
        }
        Ok(())
    })?;
    if vm.report > 0 {
        node(fdt, &unit("report", REPORT_BASE), |fdt| {
            fdt.property_string("compatible", "cassata,report")?;
            reg(fdt, &[Region::new(REPORT_BASE, vm.report)])
        })?;
    }
    vm.shared_memory.iter().try_for_each(|memory| shared_memory(fdt, memory))?;
    vm.links.iter().try_for_each(|end| link(fdt, end))?;
    vm.virtio.iter().try_for_each(|front| virtio(fdt, front))?;
    vm.backs.iter().try_for_each(|back| virtio_back(fdt, back))
}

/// The devices reach nothing but the memory that both VMs have. `dma-ranges` says so, as of a bus with few address
/// lines; Linux copies what lies elsewhere to and from there then, and has its queues there.
fn virtio(fdt: &mut FdtWriter, front: &Front) -> Written {
    let memory = front.memory();
    node(fdt, &unit("memory", memory.start), |fdt| {
        fdt.property_string("device_type", "memory")?;
        reg(fdt, &[memory])
    })?;
    node(fdt, "virtio", |fdt| {
        fdt.property_string("compatible", "simple-bus")?;
        fdt.property_u32("#address-cells", 2)?;
        fdt.property_u32("#size-cells", 2)?;
        fdt.property_null("ranges")?;
        fdt.property_array_u64("dma-ranges", &[memory.start, memory.start, memory.size])?;
        (0..front.devices.len()).try_for_each(|device| {
            let registers = front.registers(device);
            node(fdt, &unit("virtio_mmio", registers.start), |fdt| {
                fdt.property_string("compatible", "virtio,mmio")?;
                fdt.property_null("dma-coherent")?;
                reg(fdt, &[registers])?;
                let number = front.intid(device) - SPI_FIRST;
                fdt.property_array_u32("interrupts", &[SPI, number, EDGE_RISING])
            })
        })
    })
}

/// The other side: the registers by which a VM gives devices, for a program in user space.
fn virtio_back(fdt: &mut FdtWriter, back: &Back) -> Written {
    let front = &back.front;
    node(fdt, &unit("virtio-back", front.back_registers().start), |fdt| {
        fdt.property_string("compatible", "cassata,virtio-back")?;
        fdt.property_string("label", &back.name)?;
        fdt.property_string("linux,uio-name", &format!("virtio-{}", back.name))?;
        let kinds: Vec<_> = front.devices.iter().map(|kind| kind.name()).collect();
        strings(fdt, "cassata,devices", &kinds)?;
        reg(fdt, &[front.back_registers(), front.memory()])?;
        strings(fdt, "reg-names", &["registers", "memory"])?;
        fdt.property_array_u32("interrupts", &[SPI, front.back_intid() - SPI_FIRST, EDGE_RISING])
    })
}

/// `generic-uio` is what Linux's `uio_pdrv_genirq` is told to look for, as it has no name of its own.
fn link(fdt: &mut FdtWriter, end: &LinkEnd) -> Written {
    node(fdt, &unit("link", end.registers().start), |fdt| {
        strings(fdt, "compatible", &["cassata,link", "generic-uio"])?;
        fdt.property_string("label", &end.name)?;
        fdt.property_string("linux,uio-name", &format!("link-{}", end.name))?;
        fdt.property_string("cassata,peer", &end.peer)?;
        reg(fdt, &[end.registers(), end.half(end.side), end.half(1 - end.side)])?;
        strings(fdt, "reg-names", &["registers", "own", "peer"])?;
        fdt.property_array_u32("interrupts", &[SPI, end.intid() - SPI_FIRST, EDGE_RISING])
    })
}

fn shared_memory(fdt: &mut FdtWriter, memory: &SharedMemory) -> Written {
    node(fdt, &unit("shared-memory", memory.guest.start), |fdt| {
        fdt.property_string("compatible", "cassata,shared-memory")?;
        fdt.property_string("label", &memory.name)?;
        reg(fdt, &[memory.guest])?;
        if memory.read_only { fdt.property_null("read-only") } else { Ok(()) }
    })
}
