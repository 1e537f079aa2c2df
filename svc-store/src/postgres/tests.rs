//! What is particular to PostgreSQL. What every store must do is the conformance suite.

use svc_core::store::conformance;
use svc_postgres_server::server;

use super::*;
use crate::{Options, open_with};

/// Few connections, as every test has stores of its own.
fn options() -> Options {
    Options {
        read_connections: 2,
        write_connections: 4,
        secret_key: Some(SecretKey::new([7; 32])),
        ..Options::default()
    }
}

#[tokio::test]
async fn keeps_every_promise_of_the_seam() {
    let Some(server) = server() else { return };
    conformance::run_all(|env| async { open_with(&server.database(), env, options()).await.unwrap() }).await;
}
