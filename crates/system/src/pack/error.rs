//! Why a checked system could not be packed.

use miette::Diagnostic;
use std::fmt::{self, Display};

/// Why a checked system could not be packed: something is wrong with the
/// hypervisor, or with writing.
#[derive(Debug)]
pub struct PackError {
    message: String,
    hint: &'static str,
}

impl PackError {
    pub(crate) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self { message: message.into(), hint }
    }

    /// How to mend it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        self.hint
    }
}

impl Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PackError {}

impl Diagnostic for PackError {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.hint))
    }
}
