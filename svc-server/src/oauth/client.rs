//! How a client says who it is: by HTTP Basic, by its secret in the body, or, if it is public, by its id alone (RFC 6749 §2.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use svc_core::oauth::Parameters;
use svc_core::oauth::tokens::{ClientCredentials, TokenError};
use svc_core::values::Secret;

/// The number of parameters of a request that is read.
const MAX_PARAMETERS: usize = 64;

/// Reads a form, and who sends it.
///
/// # Errors
/// [`TokenError::InvalidRequest`] for a body that is no form, and for more than one way of authentication;
/// [`TokenError::InvalidClient`] for an `Authorization` that is not that of a client.
pub(super) fn read(parts: &Parts, form: &[u8]) -> Result<(ClientCredentials, Parameters), TokenError> {
    if !is_form(parts) {
        return Err(TokenError::InvalidRequest("Send the parameters as application/x-www-form-urlencoded."));
    }
    if form.iter().filter(|byte| **byte == b'&').count() >= MAX_PARAMETERS {
        return Err(TokenError::InvalidRequest("The request has too many parameters."));
    }
    let parameters = Parameters::of(form);
    let (id, secret) = (parameters.one("client_id")?, parameters.one("client_secret")?);
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    let credentials = match (headers.next(), headers.next()) {
        (None, _) => {
            let id = id.ok_or(TokenError::InvalidClient("The request does not say which client sends it."))?;
            ClientCredentials { client_id: id.to_owned(), secret: secret.map(Secret::new) }
        }
        (Some(header), None) => {
            let (known, password) = basic(header)
                .ok_or(TokenError::InvalidClient("Authorization must be Basic with the client_id and its secret."))?;
            if secret.is_some() || id.is_some_and(|id| id != known) {
                let reason = "The client authenticates twice; send its secret in Authorization or in the body.";
                return Err(TokenError::InvalidRequest(reason));
            }
            // A public client may send its id in this way, with an empty password.
            let secret = Some(password).filter(|password| !password.is_empty()).map(Secret::new);
            ClientCredentials { client_id: known, secret }
        }
        _ => return Err(TokenError::InvalidRequest("Authorization is repeated.")),
    };
    Ok((credentials, parameters))
}

fn is_form(parts: &Parts) -> bool {
    let mut types = parts.headers.get_all(CONTENT_TYPE).iter();
    let is_urlencoded = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
    };
    let is_one = types.next().is_some_and(is_urlencoded) && types.next().is_none();
    is_one && !parts.headers.contains_key(CONTENT_ENCODING)
}

/// Returns the id and the secret, which are encoded as in a form and then joined (RFC 6749 §2.3.1).
fn basic(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (id, secret) = decoded.split_once(':')?;
    Some((decode(id), decode(secret)))
}

fn decode(text: &str) -> String {
    // `=` and `&` do not end a name here, so they are escaped before the text is read as the value of one field.
    let escaped = text.replace('&', "%26");
    let field = format!("v={escaped}");
    url::form_urlencoded::parse(field.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post("/oauth/token");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

    #[test]
    fn a_client_authenticates_in_one_of_three_ways() {
        let basic = format!("Basic {}", STANDARD.encode("svcapp_1:a%2Bb+c%3A"));
        let public = format!("basic {}", STANDARD.encode("svcapp_1:"));
        for (headers, form, secret) in [
            (vec![FORM], "client_id=svcapp_1", None),
            (vec![FORM], "client_id=svcapp_1&client_secret=", None),
            (vec![FORM], "client_id=svcapp_1&client_secret=a%2Bb+c:", Some("a+b c:")),
            (vec![FORM, ("authorization", basic.as_str())], "", Some("a+b c:")),
            (vec![FORM, ("authorization", basic.as_str())], "client_id=svcapp_1", Some("a+b c:")),
            (vec![FORM, ("authorization", public.as_str())], "", None),
        ] {
            let (credentials, _) = read(&parts(&headers), form.as_bytes()).unwrap();
            assert_eq!(credentials.client_id, "svcapp_1");
            assert_eq!(credentials.secret.as_ref().map(Secret::reveal), secret, "{headers:?} {form}");
        }
    }

    #[test]
    fn other_requests_are_refused() {
        let basic = format!("Basic {}", STANDARD.encode("svcapp_1:secret"));
        let basic = ("authorization", basic.as_str());
        let many = "a=1&".repeat(MAX_PARAMETERS);
        for (headers, form, code) in [
            (vec![], "client_id=svcapp_1", "invalid_request"),
            (vec![("content-type", "application/json")], "{}", "invalid_request"),
            (vec![FORM, FORM], "client_id=svcapp_1", "invalid_request"),
            (vec![FORM, ("content-encoding", "gzip")], "client_id=svcapp_1", "invalid_request"),
            (vec![FORM], "", "invalid_client"),
            (vec![FORM], "client_id=", "invalid_client"),
            (vec![FORM], "client_id=a&client_id=a", "invalid_request"),
            (vec![FORM], "client_id=a&client_secret=b&client_secret=b", "invalid_request"),
            (vec![FORM, basic], "client_secret=secret", "invalid_request"),
            (vec![FORM, basic], "client_id=svcapp_2", "invalid_request"),
            (vec![FORM, basic, basic], "", "invalid_request"),
            (vec![FORM, ("authorization", "Bearer x")], "client_id=svcapp_1", "invalid_client"),
            (vec![FORM, ("authorization", "Basic ***")], "client_id=svcapp_1", "invalid_client"),
            (vec![FORM, ("authorization", "Basic")], "client_id=svcapp_1", "invalid_client"),
            (vec![FORM], many.as_str(), "invalid_request"),
        ] {
            let refused = read(&parts(&headers), form.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), code, "{headers:?} {form}");
        }
    }
}
