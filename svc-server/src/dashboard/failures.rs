//! Failed attempts in words: what the error of an attempt means, and what to do about it.
//!
//! The errors are those that the webhook client logs: the class of the failure, a colon and what happened.

use svc_core::values::{TimeZone, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, FailureClass};

use crate::dashboard::components::capitalized;

/// Returns what the error of an attempt means, and what to do, as sentences. `None` if the attempt succeeded.
pub(super) fn explain(log: &AttemptLog, zone: &TimeZone) -> Option<String> {
    let error = log.error.as_deref()?;
    let (class, reason) = error.split_once(": ").unwrap_or((error, ""));
    Some(match class.parse() {
        Ok(FailureClass::Dns) => dns(reason),
        Ok(FailureClass::Connect) => connect(reason),
        Ok(FailureClass::Tls) => tls(reason, zone),
        Ok(FailureClass::Timeout) => timeout(reason),
        Ok(FailureClass::Reset) => reset(reason),
        Ok(FailureClass::Blocked) => blocked(reason),
        Ok(FailureClass::Status) => status(log.status),
        Ok(FailureClass::Token) => format!(
            "The access token of the endpoint could not be got, so nothing was sent to it: {reason}. Check the address of the \
             token endpoint, the id and the secret of the client, and what your authorization server logs."
        ),
        _ => format!("The attempt failed: {error}."),
    })
}

/// How errors of TLS begin in the logs of earlier versions.
const OF_LIBRARY: [&str; 8] = [
    "invalid peer certificate: ",
    "received fatal alert: ",
    "received corrupt message",
    "received unexpected ",
    "peer is incompatible",
    "peer misbehaved",
    "peer sent no certificates",
    "tls handshake eof",
];

fn dns(reason: &str) -> String {
    let host = reason.split(' ').next().unwrap_or_default();
    format!(
        "The name {host} does not resolve to an address. Check its spelling in the URL, and that it has a record A or AAAA \
         in the public DNS."
    )
}

/// What a proxy of the operator did not do.
fn proxy(reason: &str) -> String {
    format!(
        "The proxy of this service made no connection to your endpoint: {reason}. It is tried again; tell the operator if it lasts."
    )
}

fn connect(reason: &str) -> String {
    let lower = reason.to_ascii_lowercase();
    if reason.starts_with("the proxy") {
        proxy(reason)
    } else if lower.contains("refused") {
        "The connection was refused: nothing listens on this port. Check that your program runs, and the port in the URL.".into()
    } else if lower.contains("unreachable") || lower.contains("no route") {
        "There is no way to this address from here. Check the address that the name resolves to, and your firewall."
            .into()
    } else {
        format!(
            "No connection was made: {reason}. Check the URL, and that your server can be reached from the internet."
        )
    }
}

fn tls(reason: &str, zone: &TimeZone) -> String {
    let at = |before: &str| {
        let seconds: i64 = reason.split_once(before)?.1.split(' ').next()?.parse().ok()?;
        Some(zone.date_and_time_at(Timestamp::from_micros(seconds.checked_mul(1_000_000)?)))
    };
    // The sender has words of its own, whatever they are. What follows is for logs of earlier versions, which have those of its
    // library.
    if !OF_LIBRARY.iter().any(|beginning| reason.starts_with(beginning)) {
        return format!("{}.", capitalized(reason));
    }
    let of_certificate = reason.split_once("certificate: ").map(|(_, error)| error);
    match of_certificate {
        Some(error) if error.starts_with("certificate expired") || error == "Expired" => {
            let when = at("not valid after ").map_or_else(String::new, |at| format!(" on {at} {zone}"));
            format!("The certificate of the endpoint expired{when}. Renew it, and reload your server.")
        }
        Some(error) if error.starts_with("certificate not valid yet") || error == "NotValidYet" => {
            let when = at("not valid before ").map_or_else(String::new, |at| format!(" before {at} {zone}"));
            format!("The certificate of the endpoint is not valid{when}. Check the clock of the machine that made it.")
        }
        Some(error) if error.contains("not valid for name") || error == "NotValidForName" => {
            "The certificate of the endpoint is for another name than that in the URL. Use a certificate for this name, or the \
             name in the certificate."
                .into()
        }
        Some("UnknownIssuer") => {
            "The certificate of the endpoint is not signed by a public authority, or your server does not send the intermediate \
             certificates. Send the whole chain, and use a certificate of a public authority or set `certificate_authority` of this \
             endpoint."
                .into()
        }
        Some(error) => format!("The certificate of the endpoint is refused: {error}. Replace it."),
        None if ["CertificateRequired", "UnknownCA", "BadCertificate"].iter().any(|alert| reason.ends_with(alert)) => format!(
            "Your server refused the client certificate: {reason}. Set `client_certificate` of this endpoint to one of an \
             authority that your server trusts."
        ),
        None => format!(
            "No TLS session was made: {reason}. Check that this port speaks TLS 1.2 or 1.3."
        ),
    }
}

fn timeout(reason: &str) -> String {
    let limit = reason.rsplit_once("within ").map_or("the time-out", |(_, limit)| limit);
    if reason.starts_with("the proxy") {
        proxy(reason)
    } else if reason.starts_with("no connection") {
        format!(
            "No connection within {limit}: the packets get no response. Check your firewall, and that the address is right."
        )
    } else if reason.starts_with("no TLS") {
        format!("The connection was made, but no TLS session within {limit}. Check that this port speaks TLS.")
    } else if reason.starts_with("the body") {
        format!(
            "Time-out in the body: your program began to respond, but did not end within {limit}. Send a short response, with its \
             length, and close it."
        )
    } else {
        format!("Your program did not respond within {limit}. Respond first, with 2xx, and do the work afterwards.")
    }
}

fn reset(reason: &str) -> String {
    if reason.contains("broke off") {
        "The connection ended in the middle of the response. Check that Content-Length is right, and whether a proxy or your \
         program ends connections early."
            .into()
    } else if reason.contains("the client panicked") {
        "The sender itself failed, which is a fault of this service and not of your endpoint. It is tried again; tell the \
         operator if it lasts."
            .into()
    } else if reason.contains("invalid HTTP") {
        "The response was not HTTP/1.1. Check that this port speaks HTTP, and that no other program listens there."
            .into()
    } else {
        "The connection ended before a response came. Check the log of your program for a crash, and the proxy in front of it."
            .into()
    }
}

fn blocked(reason: &str) -> String {
    if reason.contains("not https") {
        return "Nothing was sent, since the URL does not begin with https. Change the URL of the endpoint.".into();
    }
    format!(
        "Nothing was sent, since the host is not public: {reason}. Deliveries go to public addresses alone. Use a public name, or \
         a tunnel to your machine while you develop, such as `svc listen`."
    )
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
            "A proxy in front of your program responded {status}, since the program itself did not. Check that it runs."
        ),
        500..=599 => format!("Your program failed with {status}. Look for the error in its log at this time."),
        _ => format!("Your server responded {status}. Only statuses from 200 to 299 count as received."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_a_sentence_with_what_to_do() {
        let log = |status, error: &str| AttemptLog {
            attempt: 1,
            started_at: Timestamp::from_micros(0),
            duration_ms: 1,
            status,
            error: Some(error.to_owned()),
            response_body: None,
            response_truncated: false,
            remote_addr: None,
        };
        let zone = "Australia/Sydney".parse().unwrap();
        for (status, error, begins, todo) in [
            (
                0,
                "dns: hooks.example.com does not resolve",
                "The name hooks.example.com does not resolve",
                "Check its spelling",
            ),
            (
                0,
                "connect: Connection refused (os error 111)",
                "The connection was refused",
                "Check that your program runs",
            ),
            (0, "connect: Network is unreachable (os error 101)", "There is no way to this address", "firewall"),
            (0, "connect: No route to host (os error 113)", "There is no way to this address", "firewall"),
            (0, "connect: invalid authority", "No connection was made: invalid authority", "Check the URL"),
            (
                0,
                "tls: invalid peer certificate: certificate expired: verification time 1773500966 (UNIX), but certificate is not \
                 valid after 1772200800 (1300166 seconds ago)",
                "The certificate of the endpoint expired on 2026-02-28 01:00:00 Australia/Sydney.",
                "Renew it",
            ),
            (0, "tls: invalid peer certificate: Expired", "The certificate of the endpoint expired.", "Renew it"),
            (
                0,
                "tls: invalid peer certificate: certificate not valid yet: verification time 1 (UNIX), but certificate is not valid \
                 before 1772200800 (5 seconds in future)",
                "The certificate of the endpoint is not valid before 2026-02-28 01:00:00",
                "clock",
            ),
            (
                0,
                "tls: invalid peer certificate: certificate not valid for name \"a.example\"; certificate is only valid for \
                 DnsName(\"b.example\")",
                "The certificate of the endpoint is for another name",
                "Use a certificate for this name",
            ),
            (
                0,
                "tls: invalid peer certificate: UnknownIssuer",
                "The certificate of the endpoint is not signed",
                "whole chain",
            ),
            (
                0,
                "tls: invalid peer certificate: Revoked",
                "The certificate of the endpoint is refused: Revoked",
                "Replace it",
            ),
            (
                0,
                "connect: the proxy cannot be reached: Connection refused (os error 111)",
                "The proxy of this service made no connection",
                "tell the operator",
            ),
            (
                0,
                "timeout: the proxy made no connection within 5 s",
                "The proxy of this service made no connection",
                "tell the operator",
            ),
            (
                0,
                "tls: received fatal alert: CertificateRequired",
                "Your server refused the client certificate",
                "client_certificate",
            ),
            (0, "tls: received fatal alert: HandshakeFailure", "No TLS session was made", "TLS 1.2 or 1.3"),
            (0, "tls: tls handshake eof", "No TLS session was made", "TLS 1.2 or 1.3"),
            (
                0,
                "tls: there are more certificates between the certificate of the endpoint and its authority than is allowed",
                "There are more certificates between the certificate of the endpoint and its authority than is allowed.",
                "",
            ),
            (
                0,
                "tls: the connection failed within the handshake of TLS: Connection reset by peer (os error 104)",
                "The connection failed within the handshake of TLS: Connection reset by peer (os error 104).",
                "",
            ),
            (0, "timeout: no connection within 5 s", "No connection within 5 s", "firewall"),
            (
                0,
                "timeout: no TLS session within 10 s",
                "The connection was made, but no TLS session within 10 s",
                "Check",
            ),
            (
                0,
                "timeout: no complete response within 10 s",
                "Your program did not respond within 10 s",
                "Respond first",
            ),
            (
                0,
                "timeout: the body of the response did not end within 10 s",
                "Time-out in the body",
                "Send a short response",
            ),
            (
                0,
                "reset: connection closed before message completed",
                "The connection ended before a response",
                "Check the log",
            ),
            (
                0,
                "reset: the response 200 OK broke off after 4 bytes of its body: end of file before message length reached",
                "The connection ended in the middle of the response",
                "Content-Length",
            ),
            (0, "reset: invalid HTTP version parsed", "The response was not HTTP/1.1", "Check"),
            (0, "reset: the client panicked: no message", "The sender itself failed", "tell the operator"),
            (
                -1,
                "blocked: the URL is not https",
                "Nothing was sent, since the URL does not begin with https",
                "Change the URL",
            ),
            (
                -1,
                "blocked: 10.0.0.1 is a private-use address (RFC 1918)",
                "Nothing was sent, since the host is not public: 10.0.0.1 is a private-use address (RFC 1918).",
                "Use a public name",
            ),
            (
                308,
                "status: 308 Permanent Redirect",
                "Your server responded 308, a redirect, which is not followed",
                "Enter",
            ),
            (401, "status: 401 Unauthorized", "Your server refused the request with 401", "secret of this endpoint"),
            (404, "status: 404 Not Found", "Your server has nothing at this path", "Check the path"),
            (405, "status: 405 Method Not Allowed", "Your server takes no POST", "Check the path"),
            (410, "status: 410 Gone", "Your server responded 410", "not tried again"),
            (413, "status: 413 Payload Too Large", "Your server takes no body of this size", "Allow"),
            (
                422,
                "status: 422 Unprocessable Entity",
                "Your server refused the request with 422",
                "log of your program",
            ),
            (429, "status: 429 Too Many Requests", "Your server asked for fewer requests", "tried again later"),
            (500, "status: 500 Internal Server Error", "Your program failed with 500", "Look for the error"),
            (502, "status: 502 Bad Gateway", "A proxy in front of your program responded 502", "Check that it runs"),
            (199, "status: 199", "Your server responded 199", "200 to 299"),
            (0, "a text of a later version", "The attempt failed: a text of a later version.", ""),
        ] {
            let text = explain(&log(status, error), &zone).unwrap();
            assert!(text.starts_with(begins) && text.contains(todo) && text.ends_with('.'), "{error}: {text}");
        }
        assert_eq!(explain(&AttemptLog { error: None, ..log(200, "") }, &zone), None);
    }
}
