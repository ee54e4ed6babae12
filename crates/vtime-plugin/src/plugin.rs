//! The plugin half: what QEMU calls when it creates cores, translates blocks,
//! and runs them.

use crate::instrument::{self, Instrument};
use crate::registers;
use crate::reporter;
use crate::role::{self, Role};
use crate::timers;
use crate::wfe;
use qemu_plugin_sys::{
    QEMU_PLUGIN_VERSION, qemu_info_t, qemu_plugin_cb_flags, qemu_plugin_cond, qemu_plugin_id_t,
};
use qemu_plugin_sys::{
    qemu_plugin_insn_data, qemu_plugin_insn_haddr, qemu_plugin_insn_vaddr, qemu_plugin_op,
};
use qemu_plugin_sys::{qemu_plugin_register_atexit_cb, qemu_plugin_register_vcpu_exit_cb};
use qemu_plugin_sys::{qemu_plugin_register_vcpu_idle_cb, qemu_plugin_register_vcpu_init_cb};
use qemu_plugin_sys::{
    qemu_plugin_register_vcpu_insn_exec_cb, qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu,
};
use qemu_plugin_sys::{
    qemu_plugin_register_vcpu_resume_cb, qemu_plugin_register_vcpu_tb_exec_cond_cb,
};
use qemu_plugin_sys::{
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu, qemu_plugin_register_vcpu_tb_trans_cb,
};
use qemu_plugin_sys::{qemu_plugin_tb, qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use vtime::aarch64::{TimeAccess, is_exception_return, is_look, time_access, waits_for_event};
use vtime::lockstep::TRIP;
use vtime::machine::MAX_VCPUS;
use vtime::marks::{Kind, Marks};
use vtime::options::Options;

/// The interface version this is written for; QEMU refuses it if it is older.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = QEMU_PLUGIN_VERSION as c_int;

/// # Safety
/// Called by QEMU, once, before it creates the machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu_plugin_id_t,
    info: *const qemu_info_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a valid structure and `argc` terminated strings.
    let (info, arguments) = unsafe { (&*info, arguments(argc, argv)) };
    match install(info, &arguments) {
        Ok(()) => {
            end_with_a_panic();
            register(id);
            0
        }
        Err(message) => {
            eprintln!("{message}");
            -1
        }
    }
}

/// Ends QEMU when any thread of the instrument panics: the machine would stand still for ever,
/// without a word.
fn end_with_a_panic() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("virtual time: {panic}");
        std::process::abort();
    }));
}

/// # Safety
/// `argv` must hold `argc` pointers to terminated strings.
unsafe fn arguments(argc: c_int, argv: *const *const c_char) -> Vec<String> {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: by the contract above, each is valid.
    (0..count)
        .map(|i| unsafe { CStr::from_ptr(*argv.add(i)) }.to_string_lossy().into_owned())
        .collect()
}

fn install(info: &qemu_info_t, arguments: &[String]) -> Result<(), String> {
    // SAFETY: QEMU's target name is a terminated string.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if !info.system_emulation || target != c"aarch64" {
        return Err("virtual time: use it with qemu-system-aarch64".into());
    }
    if !is_preloaded() {
        return Err("virtual time: name this plugin's file in LD_PRELOAD as well".into());
    }
    // SAFETY: with system emulation, this is the member that is set.
    let cores = unsafe { info.__bindgen_anon_1.system.max_vcpus };
    if usize::try_from(cores).is_ok_and(|cores| cores > MAX_VCPUS) {
        return Err(format!(
            "virtual time: {cores} cores are more than {MAX_VCPUS}: lower -smp, its maxcpus too"
        ));
    }
    let options =
        Options::parse(arguments.iter().map(String::as_str)).map_err(|e| e.to_string())?;
    let has_core = |core: usize| c_int::try_from(core).is_ok_and(|core| core < cores);
    if let Some(stall) = options.stalls.iter().find(|stall| !has_core(stall.core)) {
        return Err(format!(
            "virtual time: option `stall={stall}`: there are {cores} cores, from 0"
        ));
    }
    if options.marks.as_ref().is_some_and(reads_registers) {
        registers::find().map_err(|error| format!("virtual time: {error}"))?;
    }
    if options.wfe_traps {
        wfe::find().map_err(|error| format!("virtual time: {error}"))?;
    }
    timers::find().map_err(|error| format!("virtual time: {error}"))?;
    let instrument = instrument::install(options).map_err(|e| format!("virtual time: {e}"))?;
    // A program that QEMU starts would miss the symbols of QEMU's that this
    // object refers to.
    // SAFETY: QEMU has no thread yet that reads or writes the environment.
    unsafe { std::env::remove_var("LD_PRELOAD") };
    role::set(Role::MainLoop);
    reporter::start(instrument).map_err(|error| format!("virtual time: {error}"))?;
    if let Some(control) = &instrument.control {
        control.hold(instrument, false);
    }
    Ok(())
}

/// Returns true if QEMU's own calls reach this object.
fn is_preloaded() -> bool {
    // SAFETY: the name is a terminated string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"pthread_cond_broadcast".as_ptr()) };
    ptr::eq(found, crate::preload::pthread_cond_broadcast as *const c_void)
}

fn register(id: qemu_plugin_id_t) {
    // SAFETY: `id` is the one QEMU gave us, and the functions have the types
    // that it expects.
    unsafe {
        qemu_plugin_register_vcpu_init_cb(id, Some(on_init));
        qemu_plugin_register_vcpu_exit_cb(id, Some(on_exit));
        qemu_plugin_register_vcpu_idle_cb(id, Some(on_idle));
        qemu_plugin_register_vcpu_resume_cb(id, Some(on_resume));
        qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translate));
        qemu_plugin_register_atexit_cb(id, Some(on_end), ptr::null_mut());
    }
}

fn instrument() -> &'static Instrument {
    instrument::get().expect("callbacks are registered after the instrument is installed")
}

fn index(vcpu: c_uint) -> usize {
    vcpu as usize
}

unsafe extern "C" fn on_init(_: qemu_plugin_id_t, vcpu: c_uint) {
    if role::vcpu().is_some() {
        eprintln!("virtual time: needs a thread for each core: use -accel tcg,thread=multi");
        std::process::abort();
    }
    if instrument().options.marks.as_ref().is_some_and(reads_registers)
        && let Err(error) = registers::learn()
    {
        eprintln!("virtual time: {error}");
        std::process::abort();
    }
    instrument().lockstep.add_vcpu(index(vcpu));
    role::set(Role::Vcpu { index: index(vcpu), falling_asleep: false });
}

unsafe extern "C" fn on_exit(_: qemu_plugin_id_t, vcpu: c_uint) {
    instrument().lockstep.remove_vcpu(index(vcpu));
}

unsafe extern "C" fn on_idle(_: qemu_plugin_id_t, vcpu: c_uint) {
    role::set(Role::Vcpu { index: index(vcpu), falling_asleep: true });
}

unsafe extern "C" fn on_resume(_: qemu_plugin_id_t, vcpu: c_uint) {
    instrument().lockstep.resume(index(vcpu));
}

unsafe extern "C" fn on_end(_: qemu_plugin_id_t, _: *mut c_void) {
    reporter::finish(instrument());
}

/// `block`: the instructions of the block, which are counted already.
unsafe extern "C" fn on_check_in(vcpu: c_uint, block: *mut c_void) {
    instrument().lockstep.pass_stall(index(vcpu), block as u64);
    instrument().lockstep.check_in(index(vcpu));
}

/// Returns true if a mark tells which exception level was interrupted.
fn reads_registers(marks: &Marks) -> bool {
    marks.all.iter().any(|(kind, _)| *kind == Kind::Vector)
}

/// `at`: the mark's index, and the instructions from it to the end of its block, which are counted
/// already.
unsafe extern "C" fn on_mark(vcpu: c_uint, at: *mut c_void) {
    let (mark, ahead) = taken_apart(at);
    instrument().note(index(vcpu), mark, None, ahead);
}

/// Like [`on_mark`], at a vector of EL2's.
unsafe extern "C" fn on_vector(vcpu: c_uint, at: *mut c_void) {
    let (mark, ahead) = taken_apart(at);
    instrument().note(index(vcpu), mark, registers::level_before(), ahead);
}

/// Bits of a mark's index in what a callback is given.
const MARK_BITS: u32 = 8;

fn put_together(mark: usize, ahead: u64) -> *mut c_void {
    (ahead << MARK_BITS | mark as u64) as *mut c_void
}

fn taken_apart(at: *mut c_void) -> (usize, u64) {
    let at = at as u64;
    ((at & ((1 << MARK_BITS) - 1)) as usize, at >> MARK_BITS)
}

unsafe extern "C" fn on_time_write(vcpu: c_uint, _: *mut c_void) {
    instrument().lockstep.armed(index(vcpu));
}

unsafe extern "C" fn on_enter(vcpu: c_uint, entry: *mut c_void) {
    let (instrument, vcpu) = (instrument(), index(vcpu));
    let host = instrument.lockstep.host();
    host.inside.set(vcpu, 1);
    instrument.with_visits(vcpu, |visits| visits.enter(entry as u64, host.in_range.get(vcpu)));
}

/// `rest`: the instructions of the block behind this one, which are counted already.
unsafe extern "C" fn on_look(vcpu: c_uint, rest: *mut c_void) {
    let (instrument, vcpu) = (instrument(), index(vcpu));
    let count = instrument.lockstep.host().in_range.get(vcpu) - rest as u64;
    instrument.with_visits(vcpu, |visits| visits.look(count));
}

unsafe extern "C" fn on_leave(vcpu: c_uint, _: *mut c_void) {
    let (instrument, vcpu) = (instrument(), index(vcpu));
    let host = instrument.lockstep.host();
    host.inside.set(vcpu, 0);
    instrument.with_visits(vcpu, |visits| visits.leave(host.in_range.get(vcpu)));
}

unsafe extern "C" fn on_translate(_: qemu_plugin_id_t, block: *mut qemu_plugin_tb) {
    let block = Block { block, instrument: instrument() };
    if block.instrument.options.range.is_some() {
        block.count_range();
    }
    if block.instrument.options.coverage.is_some() {
        block.record();
    }
    block.count();
    for index in 0..block.len() {
        // Between what is added for the instruction before and taken off for this one.
        if block.instrument.options.marks.is_some() {
            block.mark(index);
        }
        if let Some(access) = block.time_access(index) {
            block.split(index, access);
        }
    }
    if block.instrument.options.wfe_traps {
        block.trap_waits();
    }
}

/// A block that is being translated.
///
/// SAFETY, for all of its methods: the handle is valid while the translation
/// callback runs, instructions are asked for by an index below the block's
/// length, and entries belong to a scoreboard that lives for ever.
struct Block {
    block: *mut qemu_plugin_tb,
    instrument: &'static Instrument,
}

const NO_REGISTERS: qemu_plugin_cb_flags = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
const ADD: qemu_plugin_op = qemu_plugin_op::QEMU_PLUGIN_INLINE_ADD_U64;
const STORE: qemu_plugin_op = qemu_plugin_op::QEMU_PLUGIN_INLINE_STORE_U64;

impl Block {
    fn len(&self) -> usize {
        // SAFETY: see [`Block`].
        unsafe { qemu_plugin_tb_n_insns(self.block) }
    }

    /// What the instruction does to a clock.
    fn time_access(&self, index: usize) -> Option<TimeAccess> {
        self.word(index).and_then(time_access)
    }

    /// The instruction, if it is an A64 one.
    fn word(&self, index: usize) -> Option<u32> {
        let mut word = [0_u8; 4];
        // SAFETY: see [`Block`]; four bytes are valid at `word`.
        let length = unsafe {
            let instruction = qemu_plugin_tb_get_insn(self.block, index);
            qemu_plugin_insn_data(instruction, word.as_mut_ptr().cast(), word.len())
        };
        (length == word.len()).then(|| u32::from_le_bytes(word))
    }

    /// Counts the block when it begins, then checks in if the core's limit
    /// lies before its end.
    ///
    /// A core that waits there stands before a block that crosses the limit,
    /// and runs it before it looks for interrupts: a timer's interrupt is
    /// taken at the first block boundary at or behind its time, never before.
    fn count(&self) {
        let counter = self.instrument.lockstep.host().counter.entry();
        // SAFETY: see [`Block`].
        unsafe {
            qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
                self.block,
                ADD,
                counter,
                self.len() as u64,
            );
            qemu_plugin_register_vcpu_tb_exec_cond_cb(
                self.block,
                Some(on_check_in),
                NO_REGISTERS,
                qemu_plugin_cond::QEMU_PLUGIN_COND_GE,
                counter,
                TRIP,
                self.len() as *mut c_void,
            );
        }
    }

    /// Takes off what follows an instruction that sees time, and adds it
    /// again behind it.
    fn split(&self, index: usize, access: TimeAccess) {
        let rest = (self.len() - 1 - index) as u64;
        if rest > 0 {
            self.add_before(index, rest.wrapping_neg());
            self.add_before(index + 1, rest);
        }
        if access == TimeAccess::Write {
            // SAFETY: see [`Block`].
            unsafe {
                let instruction = qemu_plugin_tb_get_insn(self.block, index);
                qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    Some(on_time_write),
                    NO_REGISTERS,
                    ptr::null_mut(),
                );
            }
        }
    }

    /// Has the core note its time before the instruction, if that is a mark.
    fn mark(&self, index: usize) {
        // SAFETY: see [`Block`].
        let (instruction, virtual_address, host_address) = unsafe {
            let instruction = qemu_plugin_tb_get_insn(self.block, index);
            let host_address = qemu_plugin_insn_haddr(instruction) as u64;
            (instruction, qemu_plugin_insn_vaddr(instruction), host_address)
        };
        let Some((kind, mark)) = self.instrument.mark(virtual_address, host_address) else {
            return;
        };
        let at = put_together(mark, (self.len() - index) as u64);
        // SAFETY: see [`Block`]. What reads a register says so.
        unsafe {
            if kind == Kind::Vector {
                let reads = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_R_REGS;
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, Some(on_vector), reads, at);
            } else {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    instruction,
                    Some(on_mark),
                    NO_REGISTERS,
                    at,
                );
            }
        }
    }

    /// Has the core trap at each WFE that finds no event, if it is one that traps then: what follows in the
    /// block is not executed.
    fn trap_waits(&self) {
        let waits = |index: &usize| {
            let before = index.checked_sub(1).and_then(|before| self.word(before));
            self.word(*index).is_some_and(|word| waits_for_event(before, word))
        };
        for index in (0..self.len()).filter(waits) {
            self.split(index, TimeAccess::Read);
            // SAFETY: see [`Block`]. The callback may leave the block, so all registers have to be where
            // QEMU keeps them, as for its own functions that raise exceptions.
            unsafe {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    qemu_plugin_tb_get_insn(self.block, index),
                    Some(wfe::before_wfe),
                    qemu_plugin_cb_flags::QEMU_PLUGIN_CB_RW_REGS,
                    ptr::null_mut(),
                );
            }
        }
    }

    fn add_before(&self, index: usize, amount: u64) {
        let counter = self.instrument.lockstep.host().counter.entry();
        // SAFETY: see [`Block`].
        unsafe {
            let instruction = qemu_plugin_tb_get_insn(self.block, index);
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD, counter, amount);
        }
    }

    /// Counts instructions in the address range, and sees the core enter and
    /// leave it.
    fn count_range(&self) {
        // SAFETY: see [`Block`]; a block has at least one instruction.
        let (virtual_address, host_address) = unsafe {
            let first = qemu_plugin_tb_get_insn(self.block, 0);
            (qemu_plugin_insn_vaddr(first), qemu_plugin_insn_haddr(first) as u64)
        };
        let host = self.instrument.lockstep.host();
        if self.instrument.in_range(virtual_address, host_address) {
            self.when_inside_is(0, on_enter, virtual_address as *mut c_void);
            // SAFETY: see [`Block`].
            unsafe {
                qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
                    self.block,
                    ADD,
                    host.in_range.entry(),
                    self.len() as u64,
                );
            }
            self.see_looks();
            self.see_return();
        } else {
            self.when_inside_is(1, on_leave, ptr::null_mut());
        }
    }

    /// Sees the core look whether an interrupt is pending.
    fn see_looks(&self) {
        for index in (0..self.len()).filter(|&index| self.word(index).is_some_and(is_look)) {
            // SAFETY: see [`Block`].
            unsafe {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    qemu_plugin_tb_get_insn(self.block, index),
                    Some(on_look),
                    NO_REGISTERS,
                    (self.len() - 1 - index) as *mut c_void,
                );
            }
        }
    }

    /// Sees the core return from an exception: a visit is over also when the next instruction is
    /// in the range again.
    fn see_return(&self) {
        let last = self.len() - 1;
        if self.word(last).is_some_and(is_exception_return) {
            // SAFETY: see [`Block`].
            unsafe {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    qemu_plugin_tb_get_insn(self.block, last),
                    Some(on_leave),
                    NO_REGISTERS,
                    ptr::null_mut(),
                );
            }
        }
    }

    /// Sets the cell of each instruction that is recorded, just before it is executed. An
    /// exception may leave the block behind any of them.
    fn record(&self) {
        for index in 0..self.len() {
            // SAFETY: see [`Block`].
            unsafe {
                let instruction = qemu_plugin_tb_get_insn(self.block, index);
                let virtual_address = qemu_plugin_insn_vaddr(instruction);
                let host_address = qemu_plugin_insn_haddr(instruction) as u64;
                if let Some(cell) = self.instrument.executed(virtual_address, host_address) {
                    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
                        instruction,
                        STORE,
                        cell.entry(),
                        1,
                    );
                }
            }
        }
    }

    fn when_inside_is(
        &self,
        inside: u64,
        call: unsafe extern "C" fn(c_uint, *mut c_void),
        data: *mut c_void,
    ) {
        // SAFETY: see [`Block`].
        unsafe {
            qemu_plugin_register_vcpu_tb_exec_cond_cb(
                self.block,
                Some(call),
                NO_REGISTERS,
                qemu_plugin_cond::QEMU_PLUGIN_COND_EQ,
                self.instrument.lockstep.host().inside.entry(),
                inside,
                data,
            );
        }
    }
}
