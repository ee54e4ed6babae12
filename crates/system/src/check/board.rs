//! The machine.

use crate::board::Board;
use crate::code::Code;
use crate::draft::{At, DraftBoard};
use crate::model::Machine;
use crate::nearest::did_you_mean;
use crate::problem::Problems;
use crate::size::show;
use abi::MAX_PCPUS;
use abi::system::{HYPERVISOR_SIZE, RAM_ALIGN};

/// The machine, as far as it is known: with faulty figures replaced by the
/// largest possible, so that they raise no further complaints.
pub(super) fn check(draft: &DraftBoard, problems: &mut Problems) -> Option<Machine> {
    let board = kind(draft.kind.as_ref()?, problems)?;
    let memory = draft.memory.as_ref().and_then(|at| memory(at, board, problems));
    let pcpus = draft.pcpus.as_ref().and_then(|at| pcpus(at, board, problems));
    Some(Machine {
        board,
        pcpus: pcpus.unwrap_or(board.pcpu_mpidr.len()),
        memory: memory.unwrap_or(board.ram_max),
    })
}

fn kind(kind: &At<String>, problems: &mut Problems) -> Option<&'static Board> {
    let board = Board::find(kind.get_ref());
    if board.is_none() {
        let names = Board::all().iter().map(|board| board.kind.as_str());
        problems
            .add(Code::UnknownBoard, kind.span(), format!("there is no board `{}`", kind.get_ref()))
            .hint(did_you_mean(kind.get_ref(), names));
    }
    board
}

fn pcpus(at: &At<u64>, board: &Board, problems: &mut Problems) -> Option<usize> {
    let most = board.pcpu_mpidr.len().min(MAX_PCPUS);
    let count = usize::try_from(*at.get_ref()).ok().filter(|count| (1..=most).contains(count));
    if count.is_none() {
        let message = format!("{} pCPUs: board `{}` has 1 to {most}", at.get_ref(), board.kind);
        problems.add(Code::TooMany, at.span(), message).hint("choose a number in that range");
    }
    count
}

fn memory(at: &At<u64>, board: &Board, problems: &mut Problems) -> Option<u64> {
    let size = *at.get_ref();
    let least = board.hypervisor_pa - board.ram_pa + HYPERVISOR_SIZE + 2 * RAM_ALIGN;
    if !size.is_multiple_of(RAM_ALIGN) {
        problems
            .add(Code::Unaligned, at.span(), "the board's memory is no multiple of 2 MiB")
            .hint(format!("for example \"{}\"", show(size.next_multiple_of(RAM_ALIGN).max(least))));
        return None;
    }
    if !(least..=board.ram_max).contains(&size) {
        let message = format!(
            "board `{}` can have {} to {} of memory, not {}",
            board.kind,
            show(least),
            show(board.ram_max),
            show(size)
        );
        problems.add(Code::MemoryRange, at.span(), message).hint("choose a size in that range");
        return None;
    }
    Some(size)
}
