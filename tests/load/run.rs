//! The run: the server, the endpoint, the traffic, and what is printed of them.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::Value;
use svc_tests::Result;
use svc_tests::database::Database;
use svc_tests::endpoint;
use svc_tests::http::Http;
use svc_tests::node::Program;

use crate::Options;
use crate::figures::{Noted, header, megabytes};
use crate::traffic::{Traffic, change};
use crate::world;

/// Between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long deliveries may take after the last request.
const DRAIN: Duration = Duration::from_secs(60);
/// Shorter runs say nothing of memory: caches still fill, on SQLite 16 MB for each of three connections.
const JUDGED: Duration = Duration::from_secs(600);
/// By how much memory may differ: this, and a twentieth.
const SLACK: u64 = 2_000_000;

/// Returns what must not be.
pub(crate) async fn run(options: &Options) -> Result<Vec<String>> {
    let length = Duration::try_from_secs_f64(options.minutes * 60.0)?;
    let database = Database::new(options.database_url.as_deref())?;
    let noted = Arc::new(Mutex::new(Noted::new()?));
    let receiving = Arc::clone(&noted);
    let address = endpoint::listen(move |request| take(request, Arc::clone(&receiving))).await?;
    let tenants = world::make(&database, options.tenants, options.contacts, address).await?;
    let program = Program { file: options.server.clone(), log: "warn", ..Program::default() };
    let node = program.start(&database, &["--no-rate-limit", "--retention", &options.retention]).await?;
    let traffic = Arc::new(Traffic { server: node.address, http: Http::default(), tenants, noted });

    say(&header())?;
    let (sending, runtime, rate) = (Arc::clone(&traffic), tokio::runtime::Handle::current(), options.rate);
    let mut sent = tokio::task::spawn_blocking(move || sending.send_all(rate, length, &runtime));
    let mut memory = Vec::new();
    let (begun, mut interval) = (Instant::now(), Instant::now());
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        let is_over = tokio::select! {
            ended = &mut sent => { ended??; true }
            _ = looks.tick() => false,
        };
        memory.push(node.memory()?);
        if is_over || interval.elapsed() >= options.every {
            let over = traffic.noted().turn()?;
            let name = format!("{:.0} s", begun.elapsed().as_secs_f64());
            say(&over.row(&name, interval.elapsed(), *memory.last().unwrap_or(&0)))?;
            interval = Instant::now();
        }
        if is_over {
            break;
        }
    }
    let took = begun.elapsed();
    drain(&traffic).await;
    let violations = verdict(&traffic, &memory, took)?;
    node.stop().await?;
    Ok(violations)
}

/// Notes a delivery down.
async fn take(request: Request<Incoming>, noted: Arc<Mutex<Noted>>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let body = request.into_body().collect().await.ok().map(|body| body.to_bytes());
    match body.and_then(|body| serde_json::from_slice::<Value>(&body).ok()) {
        Some(body) => noted.lock().unwrap_or_else(PoisonError::into_inner).arrived(change(&body["data"])),
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

/// Waits for what is still to arrive.
async fn drain(traffic: &Traffic) {
    let deadline = Instant::now() + DRAIN;
    while traffic.noted().open().0 > 0 && Instant::now() < deadline {
        tokio::time::sleep(LOOK_EVERY / 20).await;
    }
}

fn verdict(traffic: &Traffic, memory: &[u64], took: Duration) -> Result<Vec<String>> {
    let mut noted = traffic.noted();
    noted.turn()?;
    let [settled, last] = [1, 3].map(|quarter| {
        let mut of = memory[memory.len() * quarter / 4..memory.len() * (quarter + 1) / 4].to_vec();
        of.sort_unstable();
        of.get(of.len() / 2).copied().unwrap_or_default()
    });
    say(&noted.total.row("all", took, last))?;
    let (lost, unmatched) = noted.open();
    say(&format!(
        "{} changes were acknowledged and delivered, {lost} lost; {unmatched} other deliveries",
        noted.delivered
    ))?;
    let is_flat = last <= settled + settled / 20 + SLACK;
    let judgement = if took < JUDGED {
        "too short a run to judge"
    } else if is_flat {
        "flat"
    } else {
        "it grew"
    };
    let (settled, last) = (megabytes(settled), megabytes(last));
    say(&format!("memory, medians of the second and the last quarter: {settled:.1} MB, {last:.1} MB: {judgement}"))?;

    let mut violations = std::mem::take(&mut noted.told);
    if lost > 0 {
        violations.push(format!("{lost} changes were not delivered within {DRAIN:?}"));
    }
    if took >= JUDGED && !is_flat {
        violations.push("memory grew".to_owned());
    }
    Ok(violations)
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
