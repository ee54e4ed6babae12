//! How many VMs there are, what they are called, and what they are told.

use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::problem::{Problems, Span};
use abi::MAX_VMS;

/// Longest name: the tables keep 16 bytes and want a zero behind.
const MAX_NAME: usize = 15;
/// Stands for the hypervisor's own console wherever VMs have theirs.
const HYPERVISOR: &str = "hypervisor";
/// Longest command line: Linux's COMMAND_LINE_SIZE on arm64, with its zero.
const MAX_CMDLINE: usize = 2047;

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    too_many("VMs", vms, MAX_VMS, |vm| &vm.span, problems);
    for (i, vm) in vms.iter().enumerate() {
        if let Some(name) = &vm.name {
            self::name(name, problems);
            let mut before = vms[..i].iter().filter_map(|vm| vm.name.as_ref());
            if let Some(first) = before.find(|other| other.get_ref() == name.get_ref()) {
                let message = format!("there is a VM `{}` already", name.get_ref());
                problems
                    .add(Code::DuplicateName, name.span(), message)
                    .see(first.span(), "here")
                    .hint("give each VM a name of its own");
            }
        }
        if let Some(cmdline) = &vm.cmdline {
            self::cmdline(cmdline, problems);
        }
    }
}

/// Refuses more of some things than a system can have.
pub(super) fn too_many<T>(
    what: &str,
    all: &[T],
    most: usize,
    span: impl Fn(&T) -> &Span,
    problems: &mut Problems,
) {
    if let Some(surplus) = all.get(most) {
        let message = format!("{} {what}: a system can have {most}", all.len());
        problems
            .add(Code::TooMany, span(surplus).clone(), message)
            .hint("leave some out, from here on");
    }
}

/// Refuses a name of what VMs share that is none, or that one of those `before` has: `what`
/// says of what, with an article if it has one.
pub(super) fn shared_name<'a>(
    at: &At<String>,
    mut before: impl Iterator<Item = &'a At<String>>,
    what: &str,
    code: Code,
    problems: &mut Problems,
) {
    let name = at.get_ref();
    if !is_plain(name) {
        problems
            .add(code, at.span(), format!("`{name}` is no name for {what}"))
            .hint(format!("1 to {MAX_NAME} of a-z, 0-9 and `-`"));
    }
    if let Some(first) = before.find(|other| other.get_ref() == name) {
        problems
            .add(code, at.span(), format!("there is {what} `{name}` already"))
            .see(first.span(), "here")
            .hint("give each a name of its own");
    }
}

/// Returns true if it is a name for a VM, or for what VMs share.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.chars().all(plain) && (1..=MAX_NAME).contains(&name.len())
}

fn name(at: &At<String>, problems: &mut Problems) {
    let name = at.get_ref();
    if !is_plain(name) {
        problems
            .add(Code::VmName, at.span(), format!("`{name}` is no name for a VM"))
            .hint(format!("1 to {MAX_NAME} of a-z, 0-9 and `-`"));
    }
    if name == HYPERVISOR {
        problems
            .add(Code::VmName, at.span(), format!("a VM cannot be called `{name}`"))
            .hint("the hypervisor's own console goes by that name; choose another");
    }
}

fn cmdline(at: &At<String>, problems: &mut Problems) {
    let line = at.get_ref();
    if line.len() > MAX_CMDLINE {
        let message =
            format!("the command line has {} bytes, at most {MAX_CMDLINE} go", line.len());
        problems
            .add(Code::CommandLine, at.span(), message)
            .hint("Linux would cut it off; shorten it");
    }
    if let Some(control) = line.chars().find(|c| c.is_control()) {
        let message = format!("the command line holds a control character ({control:?})");
        problems
            .add(Code::CommandLine, at.span(), message)
            .hint("write it on one line, words separated by spaces");
    }
}
