//! `svc listen`: a local receiver of webhook deliveries for development.

mod forward;
mod own_webhook;
mod received;

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use svc_core::env::Env;
use svc_core::values::{EventKind, HostPolicy, Secret};
use svc_webhook_verify::Verifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use url::Url;

use self::own_webhook::OwnWebhook;
use self::received::ReceivedDelivery;
use super::lookup;
use crate::exit::{Exit, Failure};
use crate::ids::InAccount;
use crate::output::{Outcome, write_now};
use crate::session::Session;
use crate::values;

/// Receive webhook deliveries on this machine, verify them and print them.
///
/// Listens on 127.0.0.1 until Ctrl-C. The first line on stdout is the address. Each POST request is then printed
/// with the result of its verification and its body. The response is 204 when the signature is valid and the
/// delivery was sent at most five minutes ago, and otherwise 401. `webhook-signature` is verified if it is there,
/// and X-SVC-Signature if it is not. A server delivers to this machine only with --allow-private-webhooks.
///
/// The command creates a webhook for as long as it runs, and deletes it at its end, also when it is killed. With --secret,
/// it opens no database, and receives the deliveries of a webhook that exists and whose URL leads here, directly or by a tunnel.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc listen\n  \
                  svc listen --events invoice.paid,invoice.sent --forward-to localhost:3000/webhooks\n  \
                  svc listen --fail 500\n  \
                  SVC_WEBHOOK_SECRET=whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o= svc listen --port 9000")]
pub(crate) struct Listen {
    /// Port to listen on; 0 picks a free port. The default is 9000, or a free port without --secret.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) account: InAccount,
    /// Kinds of events to receive, separated by commas. The default is all of them.
    #[arg(
        long,
        value_parser = values::kind_of_event(),
        hide_possible_values = true,
        value_delimiter = ',',
        conflicts_with = "secrets",
        value_name = "KIND,…"
    )]
    pub(crate) events: Vec<EventKind>,
    /// Signing secret of a webhook that exists, including whsec_. Repeat the option while the secret is being rotated.
    #[arg(
        long = "secret",
        env = "SVC_WEBHOOK_SECRET",
        hide_env_values = true,
        value_parser = wrap_secret,
        value_name = "whsec_…"
    )]
    pub(crate) secrets: Vec<Secret>,
    /// Accept deliveries that were sent more than five minutes ago, such as recorded ones.
    #[arg(long)]
    pub(crate) any_age: bool,
    /// Respond to every request with this status, from 300 to 599.
    #[arg(long, value_parser = parse_failing_status, conflicts_with = "forward_to", value_name = "STATUS")]
    pub(crate) fail: Option<StatusCode>,
    /// Forward every POST request to this http:// URL, verified or not, and return its response. The scheme can be
    /// omitted, and a number is a port of this machine: 3000, or localhost:3000/webhooks.
    #[arg(long, value_parser = parse_url, value_name = "URL")]
    pub(crate) forward_to: Option<Uri>,
    /// Print one JSON object per line, as --json does.
    #[arg(long)]
    pub(crate) print_json: bool,
}

/// The largest request or response body that is read, in bytes.
const MAX_BODY: usize = 2 << 20;
/// The port that a webhook whose secret is given is expected to have.
const DEFAULT_PORT: u16 = 9000;
/// The pause after a failed accept, such as when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Wraps a secret. It is validated later, since clap would print the value in its error message.
fn wrap_secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

/// Parses an HTTP status that a sender treats as a failure.
fn parse_failing_status(text: &str) -> Result<StatusCode, &'static str> {
    let status = text.parse::<StatusCode>().ok().filter(|status| (300..600).contains(&status.as_u16()));
    status.ok_or("must be a status from 300 to 599, such as 500")
}

/// Parses an `http://` URL. The scheme can be omitted, and a number alone is a port of this machine. Characters that a
/// request line cannot have are percent-encoded.
fn parse_url(text: &str) -> Result<Uri, &'static str> {
    const INVALID: &str = "must be a URL such as http://localhost:3000/webhooks, or a port such as 3000";
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let whole = match (has_scheme, host.bytes().all(|byte| byte.is_ascii_digit())) {
        (true, _) => text.to_owned(),
        (false, _) if host.is_empty() => return Err("must name a host, without a user name or password"),
        (false, true) => format!("http://localhost:{text}"),
        (false, false) => format!("http://{text}"),
    };
    let mut url = Url::parse(&whole).map_err(|_| INVALID)?;
    if url.scheme() != "http" {
        return Err("must be an http:// URL; https:// is not supported here");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must name a host, without a user name or password");
    }
    url.set_fragment(None);
    url.as_str().parse().map_err(|_| INVALID)
}

struct Receiver {
    verifier: Verifier,
    options: Listen,
    json: bool,
    env: Env,
    /// Reports that stdout could not be written.
    output_errors: mpsc::UnboundedSender<io::Error>,
}

/// Receives the deliveries of the webhook whose secret is given, or else of one that exists for as long as the command runs.
/// Ends with Ctrl-C, or when stdout is closed.
pub(crate) async fn run(session: &Session, options: Listen) -> Result<Outcome, Failure> {
    session.refuse_csv("`svc listen`; use --output json, or omit it")?;
    let is_json = session.is_json();
    if !options.secrets.is_empty() {
        let verifier = verifier(&options.secrets)?;
        let (listener, _) = listen(options.port.unwrap_or(DEFAULT_PORT)).await?;
        return receive(listener, verifier, options, is_json).await;
    }
    let mut env = session.env.clone();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    let service = &session.service_in(env).await?;
    let account = lookup::account(service, &options.account).await?.id;
    let (listener, url) = listen(options.port.unwrap_or(0)).await?;
    let webhook = OwnWebhook::create(service, account, &url, &options.events).await?;
    let received = match verifier(&[Secret::new(webhook.created.secret.as_str())]) {
        Ok(verifier) => tokio::select! {
            received = receive(listener, verifier, options, is_json) => received,
            gone = webhook.keep(service) => Err(gone),
        },
        Err(failure) => Err(failure),
    };
    webhook.delete(service).await?;
    received
}

/// Listens on a port of this machine. Returns the listener and its URL.
async fn listen(port: u16) -> Result<(TcpListener, String), Failure> {
    let cannot = |error| Failure::new(Exit::Failed, format!("Cannot listen on 127.0.0.1:{port}: {error}."));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(cannot)?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
    Ok((listener, url))
}

/// Receives deliveries until Ctrl-C, or until stdout is closed.
async fn receive(listener: TcpListener, verifier: Verifier, options: Listen, json: bool) -> Result<Outcome, Failure> {
    let verifier = if options.any_age { verifier.without_max_age() } else { verifier };
    let json = json || options.print_json;
    let cannot = |error| Failure::new(Exit::Failed, format!("Cannot listen: {error}."));
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);

    // The handler is installed by its first poll, which must come before the first line: a program may send the signal
    // as soon as it has read the line.
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    tokio::select! {
        biased;
        stop = &mut interrupted => return stop.map(|()| Outcome::nothing()).map_err(cannot),
        () = std::future::ready(()) => {}
    }
    let first = if json { json!({ "listening": url }).to_string() } else { format!("listening on {url}") };
    if let Err(error) = write_now(&first) {
        return output_failed(error);
    }

    let (output_errors, mut failed) = mpsc::unbounded_channel();
    let receiver = Arc::new(Receiver { verifier, options, json, env: Env::system(), output_errors });
    loop {
        tokio::select! {
            _ = &mut interrupted => return Ok(Outcome::nothing()),
            Some(error) = failed.recv() => return output_failed(error),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&receiver)))),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// Returns the result after stdout failed. A closed pipe, as in `svc listen | head -3`, is not an error.
fn output_failed(error: io::Error) -> Result<Outcome, Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(Outcome::nothing()),
        _ => Err(Failure::new(Exit::Failed, format!("The received delivery could not be printed: {error}."))),
    }
}

/// Creates a verifier for one or more secrets.
fn verifier(secrets: &[Secret]) -> Result<Verifier, Failure> {
    let refused = |reason: &str| Failure::new(Exit::Usage, format!("--secret is not a webhook secret: {reason}."));
    let mut verifier: Option<Verifier> = None;
    for secret in secrets.iter().map(Secret::reveal) {
        if !secret.starts_with("whsec_") {
            return Err(refused(
                "it must be the whole secret that was returned when the webhook was created, including whsec_",
            ));
        }
        let next = match verifier {
            None => Verifier::new(secret),
            Some(verifier) => verifier.with_secret(secret),
        };
        verifier = Some(next.map_err(|reason| refused(&reason.to_string()))?);
    }
    verifier.ok_or_else(|| refused("it is missing"))
}

async fn serve(stream: TcpStream, receiver: Arc<Receiver>) {
    let service = service_fn(move |request| {
        let receiver = Arc::clone(&receiver);
        async move {
            // In its own task, so that the delivery is printed even if the sender closes the connection.
            let response = tokio::spawn(async move { receiver.respond(request).await }).await;
            Ok::<_, Infallible>(response.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR)))
        }
    });
    // A broken connection is the sender's to report.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

impl Receiver {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            *response.body_mut() = Full::from("svc listen accepts only POST requests.\n");
            return response;
        }
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map(|body| body.to_bytes());
        let now = self.env.now();
        let (received, response) = match body {
            Ok(body) => {
                let received = ReceivedDelivery::new(&self.verifier, &head.headers, &body, now);
                match (self.options.fail, &self.options.forward_to) {
                    (Some(failure), _) => (received, status(failure)),
                    (None, Some(url)) => match forward::send(url, &head.headers, body).await {
                        Ok(response) => (received, response),
                        Err(error) => (received.with_forward_error(error), status(StatusCode::BAD_GATEWAY)),
                    },
                    (None, None) if received.verified => (received, status(StatusCode::NO_CONTENT)),
                    (None, None) => (received, status(StatusCode::UNAUTHORIZED)),
                }
            }
            Err(error) if error.is::<LengthLimitError>() => {
                let received = ReceivedDelivery::unread(&head.headers, "the body is larger than 2 MiB", now);
                (received, status(StatusCode::PAYLOAD_TOO_LARGE))
            }
            Err(_) => {
                let received = ReceivedDelivery::unread(&head.headers, "the body is incomplete", now);
                (received, status(StatusCode::BAD_REQUEST))
            }
        };
        let received = received.with_response_status(response.status());
        let text = if self.json { received.to_json() } else { received.to_text() };
        if let Err(error) = write_now(&text) {
            // Sending fails only while the receiver is shutting down.
            let _ = self.output_errors.send(error);
        }
        response
    }
}

/// Returns an empty response with this status.
fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_status_is_between_300_and_599() {
        assert_eq!(parse_failing_status("500"), Ok(StatusCode::INTERNAL_SERVER_ERROR));
        for bad in ["", "200", "299", "600", "999", "5xx"] {
            assert!(parse_failing_status(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_forward_url_is_plain_http() {
        for (good, url) in [
            ("http://[::1]:3000/", "http://[::1]:3000/"),
            ("HTTP://localhost", "http://localhost/"),
            ("127.0.0.1", "http://127.0.0.1/"),
            ("app:8080/hook", "http://app:8080/hook"),
            ("3000", "http://localhost:3000/"),
            ("3000/hook?a", "http://localhost:3000/hook?a"),
            ("localhost:3000/é ü?q=ß#part", "http://localhost:3000/%C3%A9%20%C3%BC?q=%C3%9F"),
            ("localhost/?next=http://b/", "http://localhost/?next=http://b/"),
            ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ] {
            assert_eq!(parse_url(good).map(|url| url.to_string()).as_deref(), Ok(url), "{good}");
        }
        for bad in ["", "/hook", "https://a", "http://", "http://a@b/", "ftp://a", "http://a b", "http://:80", "65536"]
        {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }
}
