//! What is left of a budget, from what ran when. The drawing keeps its own
//! account: what the scheduler believed would show nothing new.

use super::rows::Row;
use super::{Axis, Schedule, point};
use crate::report::furniture::color;
use maud::{Markup, html};
use sched::server::Server;

/// From `from` to `to`, ns, a budget goes down from `begin` to `end`; below 0 it
/// is overrun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: u64,
    pub to: u64,
    pub begin: i64,
    pub end: i64,
}

/// Periods that a drawing may show: in more, none could be told from the next, and what a file says
/// of times must not fill us.
const MOST_PERIODS: u64 = 1 << 14;

impl Schedule<'_> {
    pub(super) fn budget(&self, row: &Row, vcpu: usize, time: &Axis) -> Markup {
        let Some(server) = self.system.vcpus[vcpu].server else { return html! {} };
        // The budget has two thirds of the height, overrun the rest.
        let (scale, base) = (row.height * 2.0 / 3.0 / server.budget.0 as f64, row.height / 3.0);
        let height = |left: i64| {
            let deep = if left < 0 {
                base * left as f64 / (server.overrun.0.max(1)) as f64
            } else {
                left as f64 * scale
            };
            row.bottom() - base - deep
        };
        let place = |at: u64| point(time.place(at as f64));
        let zero = point(height(0));
        html! {
            line.zero x1=(place(0)) x2=(place(self.end)) y1=(zero) y2=(zero) {}
            @for piece in self.pieces(vcpu) {
                @let class = if piece.begin <= 0 && piece.end < 0 { "overrun".to_owned() } else { format!("left {}", color(vcpu)) };
                path class=(class) d=(format!(
                    "M{} {zero}V{}L{} {}V{zero}z",
                    place(piece.from), point(height(piece.begin)), place(piece.to), point(height(piece.end)),
                )) {}
            }
        }
    }

    /// The account of a vCPU with a server, without gaps from its first period
    /// to the end; where a budget is used up, a new piece begins. None if there are too many periods.
    pub(super) fn pieces(&self, vcpu: usize) -> Vec<Piece> {
        let spec = &self.system.vcpus[vcpu];
        let shown = self.end.saturating_sub(spec.offset);
        let periods = |server: &Server| shown.checked_div(server.period.0);
        let is_shown = |server: &Server| periods(server).is_some_and(|all| all <= MOST_PERIODS);
        let Some(server) = spec.server.filter(is_shown) else { return Vec::new() };
        let mut runs: Vec<(u64, u64)> = self
            .timeline
            .slices
            .iter()
            .filter(|slice| slice.vcpu == vcpu && slice.from < self.end)
            .map(|slice| (slice.from, slice.to.min(self.end)))
            .collect();
        runs.sort_unstable();
        let mut pieces = Vec::new();
        let mut begin = spec.offset;
        while begin < self.end {
            let end = begin.saturating_add(server.period.0).min(self.end);
            let mut account =
                Account { at: begin, left: server.budget.0.cast_signed(), pieces: &mut pieces };
            for &(from, to) in runs.iter().filter(|&&(from, to)| from < end && to > begin) {
                account.stand_until(from.max(begin));
                account.fall_until(to.min(end));
            }
            account.stand_until(end);
            begin = end;
        }
        pieces
    }
}

struct Account<'a> {
    at: u64,
    left: i64,
    pieces: &'a mut Vec<Piece>,
}

impl Account<'_> {
    fn stand_until(&mut self, to: u64) {
        self.go(to, self.left);
    }

    fn fall_until(&mut self, to: u64) {
        let taken = (to - self.at).cast_signed();
        if self.left > 0 && taken > self.left {
            self.go(self.at + self.left.unsigned_abs(), 0);
        }
        self.go(to, self.left - (to - self.at).cast_signed());
    }

    fn go(&mut self, to: u64, end: i64) {
        if to > self.at {
            self.pieces.push(Piece { from: self.at, to, begin: self.left, end });
        }
        (self.at, self.left) = (to, end);
    }
}
