//! Failed attempts in words: their causes, and what to do about them.

use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};

use crate::dashboard::components::capitalized;

/// Returns the cause of a failed attempt and what to do, as sentences. `None` if it succeeded.
pub(super) fn explain(log: &AttemptLog) -> Option<String> {
    let reason = log.reason()?;
    Some(match log.cause {
        Some(AttemptCause::Status) => status(log.status),
        Some(cause) => capitalized(&words(cause).replace("{}", reason)),
        None => format!("The attempt failed: {reason}."),
    })
}

/// Returns what a cause means, and what to do, as sentences with `{}` in place of what happened.
fn words(cause: AttemptCause) -> &'static str {
    match cause {
        AttemptCause::UnknownHost => {
            "The name {} to an address. Check its spelling in the URL, and that it has a record A or AAAA in the public DNS."
        }
        AttemptCause::ConnectionRefused => {
            "The connection was refused: nothing listens on this port. Check that your program runs, and the port in the URL."
        }
        AttemptCause::Unreachable => {
            "There is no way to this address from here. Check the address that the name resolves to, and your firewall."
        }
        AttemptCause::ConnectionFailed => {
            "No connection was made: {}. Check the URL, and that your server can be reached from the internet."
        }
        AttemptCause::ProxyFailed | AttemptCause::ProxyTimeout => {
            "The proxy of this service made no connection to your endpoint: {}. It is tried again; tell the operator if it \
             lasts."
        }
        AttemptCause::ConnectionTimeout => {
            "{}: the packets get no response. Check your firewall, and that the address is right."
        }
        AttemptCause::TlsTimeout => "The connection was made, but {}. Check that this port speaks TLS.",
        AttemptCause::ResponseTimeout => "Your program sent {}. Respond first, with 2xx, and do the work afterwards.",
        AttemptCause::BodyTimeout => {
            "Your program began to respond, but {}. Send a short response, with its length, and close it."
        }
        // The sender says all of it: which certificate, for whom, until when.
        AttemptCause::TlsFailed => "{}.",
        AttemptCause::ConnectionClosed => {
            "The connection ended before a response came. Check the log of your program for a crash, and the proxy in front \
             of it."
        }
        AttemptCause::ResponseCut => {
            "The connection ended in the middle of the response. Check that Content-Length is right, and whether a proxy or \
             your program ends connections early."
        }
        AttemptCause::InvalidResponse => {
            "The response cannot be read: {}. Check that this port speaks HTTP/1.1, and that no other program listens there."
        }
        AttemptCause::SenderFailed => {
            "The sender itself failed, which is a fault of this service and not of your endpoint. It is tried again; tell \
             the operator if it lasts."
        }
        AttemptCause::NotHttps => {
            "Nothing was sent, since the URL does not begin with https. Change the URL of the endpoint."
        }
        AttemptCause::NotPublic => {
            "Nothing was sent, since the host is not public: {}. Deliveries go to public addresses alone. Use a public name, \
             or a tunnel to your machine while you develop."
        }
        AttemptCause::TokenFailed => {
            "The access token of the endpoint could not be got, so nothing was sent to it: {}. Check the address of the token \
             endpoint, the id and the secret of the client, and what your authorization server logs."
        }
        // `status` explains these, and this page does not know what a later version adds.
        _ => "The attempt failed: {}.",
    }
}

fn status(status: i32) -> String {
    match status {
        300..=399 => format!(
            "Your server responded {status}, a redirect, which is not followed. Enter the address that it leads to as the URL of \
             the endpoint."
        ),
        401 | 403 => format!(
            "Your server refused the request with {status}. Do not ask for a password there: verify the signature instead. If you \
             do, check that your program has the secret of this endpoint."
        ),
        404 => "Your server has nothing at this path (404). Check the path in the URL.".into(),
        405 => "Your server takes no POST at this path (405). Check the path and the methods that it allows.".into(),
        410 => "Your server responded 410, which says that it wants no more of this: the delivery is not tried again."
            .into(),
        413 => "Your server takes no body of this size (413). Allow 2 MiB.".into(),
        429 => {
            "Your server asked for fewer requests (429). It is tried again later, after `Retry-After` if it has one."
                .into()
        }
        400..=499 => {
            format!(
                "Your server refused the request with {status}. The response below says why, and so may the log of your program."
            )
        }
        502..=504 => format!(
            "Your server responded {status}. A proxy does so when the program behind it does not run or does not respond, and a \
             program that is overloaded may as well. The response below says which; check that your program runs."
        ),
        500..=599 => format!("Your program failed with {status}. Look for the error in its log at this time."),
        _ => format!("Your server responded {status}. Only statuses from 200 to 299 count as received."),
    }
}

#[cfg(test)]
mod tests {
    use svc_core::values::Timestamp;
    use svc_test_support::fixture::attempt_log;

    use super::*;

    fn log(status: i32) -> AttemptLog {
        attempt_log(1, Timestamp::from_micros(0), status)
    }

    fn explained(status: i32, cause: AttemptCause, reason: &str) -> String {
        let mut log = log(status);
        log.fail(cause, reason);
        explain(&log).unwrap()
    }

    #[test]
    fn each_cause_has_sentences_with_what_to_do() {
        for cause in AttemptCause::ALL.iter().copied().filter(|cause| *cause != AttemptCause::Status) {
            let text = explained(0, cause, "what happened");
            assert!(
                text.starts_with(char::is_uppercase) && text.ends_with('.') && !text.contains("{}"),
                "{cause}: {text}"
            );
        }
        for (cause, reason, begins) in [
            (
                AttemptCause::UnknownHost,
                "hooks.example.com does not resolve",
                "The name hooks.example.com does not resolve to an address. Check its spelling",
            ),
            (
                AttemptCause::ConnectionTimeout,
                "no connection within 5 s",
                "No connection within 5 s: the packets get no response. Check your firewall",
            ),
            (
                AttemptCause::TlsTimeout,
                "no TLS session within 10 s",
                "The connection was made, but no TLS session within 10 s. Check that this port",
            ),
            (
                AttemptCause::ResponseTimeout,
                "no complete response within 10 s",
                "Your program sent no complete response within 10 s. Respond first",
            ),
            (
                AttemptCause::BodyTimeout,
                "the body of the response did not end within 10 s",
                "Your program began to respond, but the body of the response did not end within 10 s. Send a short response",
            ),
            (
                AttemptCause::ProxyFailed,
                "the proxy cannot be reached: Connection refused (os error 111)",
                "The proxy of this service made no connection to your endpoint: the proxy cannot be reached: Connection \
                 refused (os error 111). It is tried again",
            ),
            (
                AttemptCause::TlsFailed,
                "the certificate of the endpoint has expired",
                "The certificate of the endpoint has expired.",
            ),
            (
                AttemptCause::NotPublic,
                "10.0.0.1 is a private-use address (RFC 1918)",
                "Nothing was sent, since the host is not public: 10.0.0.1 is a private-use address (RFC 1918). Deliveries go",
            ),
        ] {
            let text = explained(0, cause, reason);
            assert!(text.starts_with(begins), "{cause}: {text}");
        }
    }

    #[test]
    fn each_status_has_sentences_with_what_to_do() {
        for (status, begins, todo) in [
            (199, "Your server responded 199", "200 to 299"),
            (308, "Your server responded 308, a redirect, which is not followed", "Enter"),
            (401, "Your server refused the request with 401", "secret of this endpoint"),
            (404, "Your server has nothing at this path", "Check the path"),
            (405, "Your server takes no POST", "Check the path"),
            (410, "Your server responded 410", "not tried again"),
            (413, "Your server takes no body of this size", "Allow"),
            (422, "Your server refused the request with 422", "log of your program"),
            (429, "Your server asked for fewer requests", "tried again later"),
            (500, "Your program failed with 500", "Look for the error"),
            (502, "Your server responded 502. A proxy does so", "check that your program runs"),
        ] {
            let text = explained(status, AttemptCause::Status, "a status");
            assert!(text.starts_with(begins) && text.contains(todo) && text.ends_with('.'), "{status}: {text}");
        }
    }

    #[test]
    fn what_has_no_cause_is_told_as_it_was_logged() {
        assert_eq!(explain(&log(204)), None);
        let error = Some("a text of another version".to_owned());
        let told = explain(&AttemptLog { error, ..log(0) });
        assert_eq!(told.as_deref(), Some("The attempt failed: a text of another version."));
    }
}
