//! Carries what a guest prints to the other end, and what is typed there to the guest.

use super::escape::{Escape, Wish};
use super::outbox::Outbox;
use super::port::{Port, Ready, Wanted};
use crate::console::Keyboard;
use crate::interrupt::Interrupt;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes typed at once: a guest's receive FIFO holds 64, and what does not fit is lost.
const TYPED_AT_ONCE: usize = 16;
/// Keys that may wait; more stay where they come from.
const MOST_TYPED: usize = 4096;
/// Bytes shown at once: a terminal that can be written to takes so many without blocking.
const SHOWN_AT_ONCE: usize = 256;
/// How long a reader may take for the last of it.
const LAST: Duration = Duration::from_secs(1);

/// A console and its other end.
pub(super) struct Pump {
    port: Port,
    outbox: Arc<Outbox>,
    /// Taken from the outbox and not yet delivered.
    pending: Vec<u8>,
    keyboard: Keyboard,
    typed: VecDeque<u8>,
    /// Pause between two pieces of what is typed.
    rest: Duration,
    next: Instant,
    escape: Option<(Escape, Interrupt)>,
    /// When the console had ended.
    ended: Option<Instant>,
}

impl Pump {
    pub(super) fn new(port: Port, outbox: Arc<Outbox>, keyboard: Keyboard, rest: Duration) -> Self {
        let (pending, typed, next) = (Vec::new(), VecDeque::new(), Instant::now());
        let (escape, ended) = (None, None);
        Self { port, outbox, pending, keyboard, typed, rest, next, escape, ended }
    }

    /// Takes our keys out of what is typed.
    pub(super) fn with_escape(self, escape: Escape, quit: Interrupt) -> Self {
        Self { escape: Some((escape, quit)), ..self }
    }

    /// Runs until the console has ended and what it printed is delivered.
    pub(super) fn run(&mut self) {
        loop {
            self.type_some();
            self.refill();
            if self.is_done() {
                return;
            }
            let wanted =
                Wanted { keys: self.typed.len() < MOST_TYPED, screen: !self.pending.is_empty() };
            match self.port.wait(self.outbox.bell(), wanted, self.limit()) {
                Ok(ready) => self.act(ready),
                // Nothing can be waited for: what is left has its log.
                Err(_) => return,
            }
        }
    }

    /// Types the next piece if its time has come.
    fn type_some(&mut self) {
        let now = Instant::now();
        if self.typed.is_empty() || now < self.next {
            return;
        }
        let count = TYPED_AT_ONCE.min(self.typed.len());
        let piece: Vec<u8> = self.typed.drain(..count).collect();
        if self.keyboard.send(&piece).is_err() {
            // The machine has gone.
            self.typed.clear();
        }
        self.next = now + self.rest;
    }

    fn refill(&mut self) {
        if self.port.is_gone() {
            self.pending = Vec::new();
            self.outbox.take(usize::MAX);
        } else if self.pending.is_empty() && self.port.is_attended() {
            self.pending = self.outbox.take(SHOWN_AT_ONCE);
        }
    }

    fn is_done(&mut self) -> bool {
        if !self.outbox.is_closed() {
            return false;
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        !self.port.is_attended() || self.pending.is_empty() || ended.elapsed() >= LAST
    }

    /// How long there is nothing to do unless something comes.
    fn limit(&self) -> Option<Duration> {
        let typing =
            (!self.typed.is_empty()).then(|| self.next.saturating_duration_since(Instant::now()));
        let ending = self.ended.map(|ended| LAST.saturating_sub(ended.elapsed()));
        typing.into_iter().chain(ending).min()
    }

    fn act(&mut self, ready: Ready) {
        if ready.bell {
            self.outbox.hear();
        }
        if ready.keys {
            let mut buffer = [0; 256];
            let count = self.port.read(&mut buffer);
            buffer[..count].iter().for_each(|&key| self.key(key));
        }
        if ready.screen {
            let count = self.port.write(&self.pending);
            self.pending.drain(..count);
        }
        if ready.gone {
            self.port.hang_up();
        }
        if ready.visitor {
            self.port.accept();
        }
    }

    fn key(&mut self, key: u8) {
        let Some((escape, quit)) = &mut self.escape else {
            self.typed.push_back(key);
            return;
        };
        let (typed, wish) = escape.key(key);
        self.typed.extend(typed);
        match wish {
            Some(Wish::Quit) => quit.request(),
            Some(Wish::Help) => eprintln!("\r\ncassata: {}", escape.help()),
            None => {}
        }
    }
}
