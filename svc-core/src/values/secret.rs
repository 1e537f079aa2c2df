//! Secrets that cannot be printed by accident.

use std::fmt;

/// A secret text. `Debug` shows nothing and there is no `Serialize`: to hand one out, say [`Secret::reveal`].
///
/// ```
/// let secret = svc_core::values::Secret::new("whsec_abc");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// assert_eq!(secret.reveal(), "whsec_abc");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
