//! The parameters of a request, in its query or its form.

/// Parameters that were sent as `application/x-www-form-urlencoded`.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<(String, String)>);

/// A parameter was sent more than once, which RFC 6749 §3.1 forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated;

impl Parameters {
    /// Reads parameters.
    pub fn of(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the value of a parameter. One without a value counts as omitted (RFC 6749 §3.1).
    ///
    /// # Errors
    /// [`Repeated`].
    pub fn one(&self, name: &str) -> Result<Option<&str>, Repeated> {
        let mut values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Repeated),
            (value, None) => Ok(value.filter(|value| !value.is_empty())),
        }
    }
}

/// Returns whether `write` is asked for by a scope, which is `read` where none is sent.
///
/// # Errors
/// `()` for a scope that there is not.
pub(super) fn asks_for_write(scope: Option<&str>) -> Result<bool, ()> {
    let mut writes = false;
    for scope in scope.unwrap_or_default().split(' ').filter(|scope| !scope.is_empty()) {
        match scope {
            // Clients of other services send `offline_access` to get a refresh token. Here each gets one.
            "read" | "offline_access" => {}
            "write" => writes = true,
            _ => return Err(()),
        }
    }
    Ok(writes)
}

/// Returns the scope of a token as a response names it.
pub fn scope_text(writes: bool) -> &'static str {
    if writes { "read write" } else { "read" }
}

/// Returns a resource (RFC 8707) as a path below the issuer, empty for all of it. `None` if this service has no such resource.
pub(super) fn resource_path<'r>(resource: &str, issuer: &str, paths: &'r [String]) -> Option<&'r str> {
    let path = resource.strip_prefix(issuer)?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() { Some("") } else { paths.iter().map(String::as_str).find(|known| *known == path) }
}
