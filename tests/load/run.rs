//! The run: starts the server, the endpoint and the traffic, and prints the measurements.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::Value;
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::endpoint;
use svc_test_support::http::HttpClient;
use svc_test_support::node::Program;

use crate::Options;
use crate::fixture;
use crate::stats::{Measurements, header, megabytes};
use crate::traffic::{Traffic, change};

/// The interval at which memory is measured.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// How long deliveries may take after the last request.
const DRAIN: Duration = Duration::from_secs(60);
/// Memory is not judged in shorter runs, because caches are still filling: on SQLite 4 MB for the writer and for
/// each of three others.
const MEMORY_CHECK_LENGTH: Duration = Duration::from_secs(600);
/// Memory may grow by this many bytes plus 5 %.
const MEMORY_TOLERANCE: u64 = 2_000_000;

/// Runs everything and returns the violations.
pub(crate) async fn run(options: &Options) -> Result<Vec<String>> {
    let length = Duration::try_from_secs_f64(options.minutes * 60.0)?;
    let database = Database::new(options.database_url.as_deref())?;
    let measurements = Arc::new(Mutex::new(Measurements::new()?));
    let receiving = Arc::clone(&measurements);
    let address = endpoint::listen(move |request| receive(request, Arc::clone(&receiving))).await?;
    let tenants = fixture::create(&database, options.tenants, options.contacts, address).await?;
    let program = Program { file: options.server.clone(), log: "warn", ..Program::default() };
    let node = program.start(&database, &["--no-rate-limit", "--retention", &options.retention]).await?;
    let traffic = Arc::new(Traffic { server: node.address, http: HttpClient::default(), tenants, measurements });

    print_line(&header())?;
    let (sending, runtime, rate) = (Arc::clone(&traffic), tokio::runtime::Handle::current(), options.rate);
    let mut sent = tokio::task::spawn_blocking(move || sending.send_all(rate, length, &runtime));
    let mut memory = Vec::new();
    let (started, mut interval) = (Instant::now(), Instant::now());
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    loop {
        let is_over = tokio::select! {
            ended = &mut sent => { ended??; true }
            _ = ticks.tick() => false,
        };
        memory.push(node.memory()?);
        if is_over || interval.elapsed() >= options.every {
            let over = traffic.measurements().finish_interval()?;
            let name = format!("{:.0} s", started.elapsed().as_secs_f64());
            print_line(&over.row(&name, interval.elapsed(), *memory.last().unwrap_or(&0)))?;
            interval = Instant::now();
        }
        if is_over {
            break;
        }
    }
    let took = started.elapsed();
    drain(&traffic).await;
    let violations = evaluate(&traffic, &memory, took)?;
    node.stop().await?;
    Ok(violations)
}

/// Records a delivery.
async fn receive(request: Request<Incoming>, measurements: Arc<Mutex<Measurements>>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let body = request.into_body().collect().await.ok().map(|body| body.to_bytes());
    match body.and_then(|body| serde_json::from_slice::<Value>(&body).ok()) {
        Some(body) => {
            measurements.lock().unwrap_or_else(PoisonError::into_inner).record_delivered(change(&body["data"]))
        }
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

/// Waits for outstanding deliveries.
async fn drain(traffic: &Traffic) {
    let deadline = Instant::now() + DRAIN;
    while traffic.measurements().unmatched_counts().0 > 0 && Instant::now() < deadline {
        tokio::time::sleep(SAMPLE_INTERVAL / 20).await;
    }
}

fn evaluate(traffic: &Traffic, memory: &[u64], took: Duration) -> Result<Vec<String>> {
    let mut measurements = traffic.measurements();
    measurements.finish_interval()?;
    let [settled, last] = [1, 3].map(|quarter| {
        let mut of = memory[memory.len() * quarter / 4..memory.len() * (quarter + 1) / 4].to_vec();
        of.sort_unstable();
        of.get(of.len() / 2).copied().unwrap_or_default()
    });
    print_line(&measurements.total.row("all", took, last))?;
    let (lost, unmatched) = measurements.unmatched_counts();
    print_line(&format!(
        "{} changes acknowledged and delivered, {lost} lost; {unmatched} further deliveries",
        measurements.delivered
    ))?;
    let is_flat = last <= settled + settled / 20 + MEMORY_TOLERANCE;
    let trend = if took < MEMORY_CHECK_LENGTH {
        "not judged, the run is too short"
    } else if is_flat {
        "flat"
    } else {
        "grew"
    };
    let (settled, last) = (megabytes(settled), megabytes(last));
    print_line(&format!(
        "median memory of the second and of the last quarter: {settled:.1} MB, {last:.1} MB: {trend}"
    ))?;

    let mut violations = std::mem::take(&mut measurements.first_errors);
    if lost > 0 {
        violations.push(format!("{lost} changes were not delivered within {DRAIN:?}"));
    }
    if took >= MEMORY_CHECK_LENGTH && !is_flat {
        violations.push("memory grew".to_owned());
    }
    Ok(violations)
}

fn print_line(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
