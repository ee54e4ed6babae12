//! Ctrl-C and its relatives.
//!
//! The first SIGINT, SIGTERM or SIGHUP asks what runs to come to an end in
//! good order; the second ends the process at once. Machines die with it
//! either way (see [`crate::machine::child`]).

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What a shell reports for a process that SIGINT (2) ended.
pub const EXIT_CODE: u8 = 128 + 2;

/// The process's own, once it is installed.
static INSTALLED: OnceLock<Interrupt> = OnceLock::new();

/// Returns true if a signal has asked this process to stop.
#[must_use]
pub fn was_requested() -> bool {
    INSTALLED.get().is_some_and(Interrupt::requested)
}

/// Says when the user has asked us, or a run, to stop. Clones share the answer.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// One that no signal reaches, for tests and for callers with signal
    /// handlers of their own.
    #[must_use]
    pub fn never() -> Self {
        Self::default()
    }

    /// The process's own: the first call installs the handlers.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install() -> io::Result<Self> {
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the second signal finds the flag set and exits.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                EXIT_CODE.into(),
                Arc::clone(&interrupt.asked),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.asked))?;
        }
        Ok(INSTALLED.get_or_init(|| interrupt).clone())
    }

    /// Returns true if we were asked to stop.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Asks, as a signal would.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}
