//! Runs the conformance suite of stores on a database that speaks PostgreSQL's protocol, such as Citus. Each case has a schema
//! of its own, which is removed afterwards. A script may change the tables after they were created.
//!
//! ```text
//! cargo run -p svc-examples --bin conformance -- postgres://svc@coordinator/empty ops/citus.sql
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use svc_core::env::Env;
use svc_core::store::Store;
use svc_store::{Options, SecretKey};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of an empty database is missing")?;
    let script = arguments.next().map(PathBuf::from).map(std::fs::read_to_string).transpose()?.unwrap_or_default();
    let cases = AtomicU32::new(0);
    svc_store_tests::run_all(|env| {
        let schema = format!("case_{}", cases.fetch_add(1, Ordering::Relaxed));
        let store = store(&url, &script, schema, env);
        async { store.await.unwrap_or_else(|error| fail(&*error)) }
    })
    .await;
    for case in 0..cases.into_inner() {
        execute(&url, &format!("DROP SCHEMA IF EXISTS case_{case} CASCADE")).await?;
    }
    Ok(())
}

/// Opens a store on a new schema.
async fn store(url: &str, script: &str, schema: String, env: Env) -> Result<Arc<dyn Store>> {
    execute(url, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")).await?;
    let separator = if url.contains('?') { '&' } else { '?' };
    // Extensions are in the schema `public`.
    let url = format!("{url}{separator}options=-csearch_path%3D{schema},public");
    svc_store::migrate(&url).await?;
    execute(&url, &format!("BEGIN; {script}; COMMIT")).await?;
    let secret_key = Some(SecretKey::new([7; 32]));
    let options = Options { read_connections: 1, write_connections: 2, secret_key, ..Options::default() };
    Ok(svc_store::open_with(&url, env, options).await?)
}

async fn execute(url: &str, sql: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await?;
    drop(client);
    connection.await??;
    Ok(())
}

#[expect(clippy::panic, reason = "a case that cannot begin fails like one whose promise is broken")]
fn fail(error: &dyn std::error::Error) -> ! {
    panic!("{error}")
}
