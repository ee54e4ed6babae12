//! `cassata move` and `cassata policy`.

use super::say;
use crate::cli::{Move, Policy};
use crate::place;
use lab::operator::{Request, ask};
use miette::Result;
use std::path::Path;

/// Has a vCPU of a running system go to another pCPU.
pub fn move_vcpu(arguments: &Move) -> Result<u8> {
    let Move { run, vcpu, pcpu } = arguments;
    operate(run, &Request::Move { vcpu: vcpu.clone(), pcpu: *pcpu })
}

/// Gives a VM of a running system another migration policy.
pub fn switch_policy(arguments: &Policy) -> Result<u8> {
    let Policy { run, vm, policy } = arguments;
    operate(run, &Request::Policy { vm: vm.clone(), policy: policy.clone() })
}

fn operate(run: &Path, request: &Request) -> Result<u8> {
    say(&ask(&place::of_run(run), request)?);
    Ok(0)
}
