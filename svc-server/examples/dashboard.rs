//! The dashboard in an axum application that has signed its people in itself.
//!
//! Run it with `cargo run -p svc-examples --bin dashboard`, and open the URL that it prints.

#![expect(clippy::print_stdout, reason = "the example prints a URL to open")]

use std::error::Error;

use axum::extract::Request;
use axum::{Extension, Router, middleware};
use svc_core::prelude::*;
use svc_server::Builder;
use svc_server::dashboard::Identity;
use tokio::net::TcpListener;

/// A person with a session in the application.
#[derive(Clone)]
struct SignedIn {
    account: TenantId,
    email: String,
    /// The token in the cookie of the session.
    token: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let svc = Svc::in_memory();
    let account = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?.id;
    let (api, background) = Builder::new(&svc)
        .mount("/business")
        .dashboard(true)
        .dashboard_identity(|request| {
            Box::pin(async move {
                let person = request.extensions.get::<SignedIn>()?;
                Some(Identity::new(person.account, Role::Owner, &person.email, &person.token))
            })
        })
        .build();
    tokio::spawn(background.run(std::future::pending()));

    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/business/dashboard", listener.local_addr()?);
    let app =
        Router::new().nest_service("/business", api).layer(middleware::map_request(sign_in)).layer(Extension(account));
    Ok(axum::serve(listener, app).await?)
}

/// Finds out who asks. An application looks the cookie of its session up here; the example knows one person.
async fn sign_in(Extension(account): Extension<TenantId>, mut request: Request) -> Request {
    let (email, token) = ("ada@example.com".to_owned(), "the-token-of-a-session".to_owned());
    request.extensions_mut().insert(SignedIn { account, email, token });
    request
}
