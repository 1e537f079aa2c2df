//! Receives webhooks: verifies each delivery, answers at once, and reads the contact that it is about.
//!
//! A delivery has the record as it was at its event. The receiver reads it again, as deliveries come in no order, and two
//! changes of one contact then need no sorting.
//!
//! ```sh
//! export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_… SVC_WEBHOOK_SECRET=whsec_…
//! cargo run -p svc-examples --bin webhook_receiver
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what it receives")]

use std::env;
use std::error::Error as StdError;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde::Deserialize;
use svc_client::prelude::*;
use svc_webhook_verify::{Event, Verifier};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// What the receiver needs to know of a record.
#[derive(Deserialize)]
struct Changed {
    id: String,
}

type Receiver = Arc<(Verifier, mpsc::Sender<Event<Changed>>)>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let client = Client::builder(&env::var("SVC_URL")?, &env::var("SVC_KEY")?).build()?;
    let listener = TcpListener::bind("127.0.0.1:9000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let print = |text: String| println!("{text}");
    run(client, listener, &env::var("SVC_WEBHOOK_SECRET")?, print).await
}

/// Receives deliveries that are signed with this secret, and calls `print` for each contact that changed.
pub(crate) async fn run(
    client: Client,
    listener: TcpListener,
    secret: &str,
    print: impl Fn(String),
) -> Result<(), Box<dyn StdError>> {
    // When the queue is full, the endpoint says so, and the service sends the delivery again later.
    let (sender, mut events) = mpsc::channel(1000);
    let receiver: Receiver = Arc::new((Verifier::new(secret)?, sender));
    let app = Router::new().route("/", post(receive)).with_state(receiver);
    let serve = axum::serve(listener, app).into_future();
    let read = async {
        while let Some(event) = events.recv().await {
            print(describe(&client, &event).await?);
        }
        Ok::<_, Box<dyn StdError>>(())
    };
    tokio::select! {
        served = serve => Ok(served?),
        read = read => read,
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let (verifier, queue) = &*receiver;
    let signature = headers.get("x-svc-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match verifier.verify_event(signature, &body) {
        Ok(event) if !event.event.starts_with("contact.") => (StatusCode::NO_CONTENT, String::new()),
        Ok(event) => match queue.try_send(event) {
            Ok(()) => (StatusCode::NO_CONTENT, String::new()),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "The queue is full; send it again later.\n".to_owned()),
        },
        Err(error) => (StatusCode::UNAUTHORIZED, format!("{error}\n")),
    }
}

async fn describe(client: &Client, event: &Event<Changed>) -> Result<String, Box<dyn StdError>> {
    let contact = client.contacts().get(event.data.id.parse()?).await;
    Ok(match contact {
        Ok(contact) => format!("{} {} {}", event.event, contact.id, contact.etag),
        Err(error) if error.code() == Some("not_found") => format!("{} {} is deleted", event.event, event.data.id),
        Err(error) => return Err(error.into()),
    })
}
