//! The parameters of a request, in its query or its form.

/// Parameters that were sent as `application/x-www-form-urlencoded`.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<(String, String)>);

/// The parameters of an authorization request that mean something. All others are ignored.
const AUTHORIZATION: [&str; 10] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "code_challenge",
    "code_challenge_method",
    "scope",
    "state",
    "resource",
    "prompt",
];
/// The largest authorization request that can be kept, in bytes. In base64 it fits into a cookie.
const MAX_KEPT: usize = 2800;
/// The longest query that such a request may become, in bytes: with the path in front of it, servers still take the target.
/// Encoded, a character may take nine bytes in place of three.
const MAX_QUERY: usize = 7900;

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

    /// Returns an authorization request in the form in which it is kept while its owner signs in: the number of each parameter,
    /// and its value after its length, so that none grows by what it consists of. `None` if it is too large, here or as a query
    /// later, or a parameter is repeated.
    pub fn to_kept(&self) -> Option<Vec<u8>> {
        let mut kept = Vec::new();
        for (number, name, value) in self.0.iter().filter_map(|(name, value)| Some((number(name)?, name, value))) {
            self.one(name).ok()?;
            kept.push(number);
            kept.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
            kept.extend(value.as_bytes());
        }
        let is_short = |request: Self| request.to_query().len() <= MAX_QUERY;
        (kept.len() <= MAX_KEPT && Self::from_kept(&kept).is_none_or(is_short)).then_some(kept)
    }

    /// Reads what [`to_kept`](Self::to_kept) has returned. `None` for anything else.
    pub fn from_kept(mut kept: &[u8]) -> Option<Self> {
        let mut parameters = Vec::new();
        while let Some(([number, length @ ..], rest)) = kept.split_first_chunk::<3>() {
            let name = AUTHORIZATION.get(usize::from(*number))?;
            let (value, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            parameters.push(((*name).to_owned(), std::str::from_utf8(value).ok()?.to_owned()));
            kept = rest;
        }
        (kept.is_empty() && !parameters.is_empty()).then_some(Self(parameters))
    }

    /// Returns the parameters as a query.
    pub fn to_query(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

/// Returns the number by which a parameter is kept, if it means something.
fn number(name: &str) -> Option<u8> {
    AUTHORIZATION.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_request_is_what_was_sent() {
        let state = "%22".repeat(900) + "%00%C3%BC+%26";
        let sent = Parameters::of(format!("client_id=svcapp_1&state={state}&scope=read+write&other=1").as_bytes());
        let kept = Parameters::from_kept(&sent.to_kept().unwrap()).unwrap();
        assert_eq!(kept.one("state"), Ok(Some(format!("{}\0\u{fc} &", "\"".repeat(900)).as_str())));
        assert_eq!((kept.one("client_id"), kept.one("scope")), (Ok(Some("svcapp_1")), Ok(Some("read write"))));
        assert_eq!((kept.one("other"), kept.one("prompt")), (Ok(None), Ok(None)));
        let again = Parameters::of(kept.to_query().as_bytes());
        assert_eq!(again.one("state"), kept.one("state"));
    }

    #[test]
    fn what_cannot_be_kept_is_known() {
        let of = |text: &str| Parameters::of(text.as_bytes());
        let free = MAX_KEPT - 3;
        assert!(of(&format!("state={}", "a".repeat(free))).to_kept().is_some());
        assert!(of(&format!("state={}", "a".repeat(free + 1))).to_kept().is_none());
        assert!(of(&format!("other={}", "a".repeat(MAX_KEPT))).to_kept().is_some());
        assert!(of("state=a&state=b").to_kept().is_none());
        // It would be kept, and the browser sent to a URL that is too long.
        assert!(of(&format!("state={}", "%22".repeat(free))).to_kept().is_none());
        assert!(of(&format!("state={}", "%22".repeat(2600))).to_kept().is_some());
        let kept = of("state=abc").to_kept().unwrap();
        let more = [kept.as_slice(), b"a"].concat();
        let changed = [&kept[1..], &kept[..kept.len() - 1], b"", b"client_id=svcapp_1", &more];
        assert!(changed.iter().all(|changed| Parameters::from_kept(changed).is_none()));
    }
}
