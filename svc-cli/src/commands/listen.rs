//! `svc listen`: a receiver of deliveries for development, on this machine alone.

mod forward;
mod received;

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use svc_core::env::Env;
use svc_core::values::Secret;
use svc_webhook_verify::Verifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use self::received::Received;
use crate::cli::Listen;
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, write_now};

/// The largest body that is read, of a delivery or of an answer to one.
const MAX_BODY: usize = 1 << 20;
/// Pause after a failed accept, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What everything is answered with.
enum Policy {
    /// With 204 or 401, as it verifies.
    Verify,
    /// With this status.
    Fail(StatusCode),
    /// As the server at this URL does.
    Forward(Uri),
}

struct Receiver {
    verifier: Verifier,
    policy: Policy,
    json: bool,
    env: Env,
    /// Where it is told that stdout failed.
    failures: mpsc::UnboundedSender<io::Error>,
}

/// Receives until Ctrl-C, or until nobody reads stdout any more.
pub(super) async fn run(options: Listen, json: bool) -> Result<Outcome, Failure> {
    let verifier = verifier(&options.secrets)?;
    let policy = match (options.fail, options.forward_to) {
        (Some(status), _) => Policy::Fail(status),
        (None, Some(url)) => Policy::Forward(url),
        (None, None) => Policy::Verify,
    };
    let json = json || options.print_json;
    let cannot = |error| Failure::new(Exit::Failed, format!("Cannot listen on 127.0.0.1:{}: {error}.", options.port));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await.map_err(cannot)?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot)?);

    // From its first poll on, a Ctrl-C is not lost: whoever has read the first line may send it.
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    tokio::select! {
        biased;
        stop = &mut interrupted => return stop.map(|()| Outcome::nothing()).map_err(cannot),
        () = std::future::ready(()) => {}
    }
    let first = if json { json!({ "listening": url }).to_string() } else { format!("listening on {url}") };
    if let Err(error) = write_now(&first) {
        return ended(error);
    }

    let (failures, mut failed) = mpsc::unbounded_channel();
    let receiver = Arc::new(Receiver { verifier, policy, json, env: Env::system(), failures });
    loop {
        tokio::select! {
            _ = &mut interrupted => return Ok(Outcome::nothing()),
            Some(error) = failed.recv() => return ended(error),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&receiver)))),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

/// A reader that has gone away, as in `svc listen | head -3`, has seen enough.
fn ended(error: io::Error) -> Result<Outcome, Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(Outcome::nothing()),
        _ => Err(Failure::new(Exit::Failed, format!("What was received could not be printed: {error}."))),
    }
}

fn verifier(secrets: &[Secret]) -> Result<Verifier, Failure> {
    let refused = |reason: &str| Failure::new(Exit::Usage, format!("--secret is no secret of a webhook: {reason}."));
    let mut verifier: Option<Verifier> = None;
    for secret in secrets.iter().map(Secret::reveal) {
        if !secret.starts_with("whsec_") {
            return Err(refused("it must be the whole text that the webhook was created with, from whsec_ on"));
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
            // On its own, so that what a sender does not wait for is printed all the same.
            let answer = tokio::spawn(async move { receiver.answer(request).await }).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR)))
        }
    });
    // A connection that breaks is its sender's affair.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

impl Receiver {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            let mut answer = status(StatusCode::METHOD_NOT_ALLOWED);
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            *answer.body_mut() = Full::from("svc listen takes POST requests alone.\n");
            return answer;
        }
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map(|body| body.to_bytes());
        let now = self.env.now();
        let (received, answer) = match body {
            Ok(body) => {
                let received = Received::new(&self.verifier, &head.headers, &body, now);
                match &self.policy {
                    Policy::Verify if received.verified => (received, status(StatusCode::NO_CONTENT)),
                    Policy::Verify => (received, status(StatusCode::UNAUTHORIZED)),
                    Policy::Fail(failure) => (received, status(*failure)),
                    Policy::Forward(url) => match forward::pass_on(url, &head.headers, body).await {
                        Ok(answer) => (received, answer),
                        Err(error) => (received.with_forward_error(error), status(StatusCode::BAD_GATEWAY)),
                    },
                }
            }
            Err(error) if error.is::<LengthLimitError>() => {
                let received = Received::unread(&head.headers, "the body is larger than 1 MiB", now);
                (received, status(StatusCode::PAYLOAD_TOO_LARGE))
            }
            Err(_) => {
                let received = Received::unread(&head.headers, "the body did not arrive whole", now);
                (received, status(StatusCode::BAD_REQUEST))
            }
        };
        let received = received.answered(answer.status());
        let text = if self.json { received.to_json() } else { received.to_text() };
        if let Err(error) = write_now(&text) {
            // The receiver is about to end then.
            let _ = self.failures.send(error);
        }
        answer
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
