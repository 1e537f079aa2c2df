//! Secrets that are not printed by accident.

use std::fmt;

/// A secret text. Its `Debug` shows nothing, and it cannot be serialised. [`Secret::reveal`] returns the text.
///
/// ```
/// let secret = svc_core::values::Secret::new("whsec_abc");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// assert_eq!(secret.reveal(), "whsec_abc");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Returns a secret with this text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A value with secrets, which is stored as a text that is encrypted as a whole.
pub trait Stored: Sized {
    /// Returns the text.
    fn to_stored(&self) -> Secret;

    /// Returns the value with this text, or `None` if there is none.
    fn from_stored(text: &Secret) -> Option<Self>;
}
