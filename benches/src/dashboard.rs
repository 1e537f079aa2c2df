//! Block `dashboard`: the pages of an account with many deliveries, its live lists with 200 viewers, and what the request log
//! costs the API. Each is printed as a line.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_store::SqliteStore;

use crate::apps;
use crate::child::Child;
use crate::error::Result;
use crate::load;
use crate::options::{Options, Subject};
use crate::pending;
use crate::requests::Requests;
use crate::sample::Sample;
use crate::seed;
use crate::table::{self, Ratio, Row};

/// The number of contacts of the account.
const CONTACTS: u32 = 10_000;
/// How often each page is requested.
const PAGE_REQUESTS: usize = 301;
/// The number of viewers of a live list.
const VIEWERS: usize = 200;
/// The time between two writes that the viewers see.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// Measures all figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("dashboard.db");
    seed::seed(&file, 1, CONTACTS)?;
    pending::add_backlog(&file, options.deliveries)?;
    // One in a thousand failed.
    Connection::open(&file)?.execute_batch(
        "UPDATE deliveries SET status = iif(rowid % 1000 = 0, 'failed', 'succeeded'), next_attempt_at = NULL;
         DELETE FROM endpoint_schedule;",
    )?;
    let [owner, operator] = cookies(&file)?;
    let paths = paths(&file)?;
    let tenants = seed::tenants(&file)?;
    {
        let server = serve(&file, true)?;
        let mut posts = Requests::new(Subject::Post, &tenants);
        for _ in 0..1_000 {
            load::send_once(server.1, &mut posts)?;
        }
        table::print_line(&format!("pages of an account with {} deliveries:", options.deliveries))?;
        for path in &paths {
            print_page(server.1, path, if is_for_operators(path) { &operator } else { &owner })?;
        }
        viewers(options, &server, &owner, &mut posts)?;
    }
    request_log(options, &file, &tenants)
}

pub(crate) fn serve(file: &Path, request_log: bool) -> Result<(Child, SocketAddr)> {
    let mut words = vec![OsStr::new("serve-dashboard"), file.as_os_str()];
    words.extend(request_log.then_some(OsStr::new("--request-log")));
    let mut child = Child::start(&words)?;
    let address = child.read_line()?.parse()?;
    Ok((child, address))
}

/// Signs an owner and an operator in, and returns their cookies.
pub(crate) fn cookies(file: &Path) -> Result<[String; 2]> {
    let svc = Svc::new(SqliteStore::open(file, Env::system())?);
    crate::child::runtime()?.block_on(async {
        let tenant = svc.accounts().list(None, 1).await?.pop().ok_or("no tenant")?.id;
        let mut cookies = [String::new(), String::new()];
        let links = [DashboardLinkCreate::to(tenant, Role::Owner), DashboardLinkCreate::for_operator()];
        for (cookie, link) in cookies.iter_mut().zip(links) {
            let link = svc.dashboard().create_link(link).await?;
            let session = svc.dashboard().sign_in(link.token.reveal()).await?;
            *cookie = format!("svc_session={}", session.token.reveal());
        }
        Ok(cookies)
    })
}

/// Returns the paths of the pages.
fn paths(file: &Path) -> Result<Vec<String>> {
    let svc = Svc::new(SqliteStore::open(file, Env::system())?);
    let found: Result<_> = crate::child::runtime()?.block_on(async {
        let tenant = svc.accounts().list(None, 1).await?.pop().ok_or("no tenant")?.id;
        let account = svc.account(tenant);
        let endpoint =
            account.webhooks().list(NoFilter {}, ListParams::default()).await?.data.pop().ok_or("no endpoint")?;
        let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
        let delivery = account.deliveries().list(newest).await?.pop().ok_or("no delivery")?;
        Ok((endpoint.id, delivery, apps::create(&svc).await?))
    });
    let (endpoint, delivery, client_id) = found?;
    let mut paths: Vec<String> =
        ["", "/webhooks", "/deliveries", "/deliveries?status=failed", "/deliveries?kind=job.created"]
            .into_iter()
            .chain([
                "/deliveries?record=none",
                "/events",
                "/events?kind=job.created",
                "/requests",
                "/contacts",
                "/invoices",
            ])
            .chain(["/keys", "/settings", "/audit", "/accounts", "/system", "/find?q=turing"])
            .map(|path| format!("/dashboard{path}"))
            .collect();
    paths.extend([
        format!("/dashboard/webhooks/{endpoint}"),
        format!("/dashboard/deliveries?endpoint={endpoint}"),
        format!("/dashboard/deliveries?endpoint={endpoint}&status=held"),
        format!("/dashboard/deliveries/{}", delivery.id),
        format!("/dashboard/events/{}", delivery.event_id),
        format!("{}&prompt=consent", apps::authorization_path(&client_id)),
    ]);
    Ok(paths)
}

fn is_for_operators(path: &str) -> bool {
    ["/dashboard/accounts", "/dashboard/system"].contains(&path)
}

fn request(path: &str, cookie: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n")
}

pub(crate) fn print_page(address: SocketAddr, path: &str, cookie: &str) -> Result<()> {
    let (mut stream, request) = (TcpStream::connect(address)?, request(path, cookie));
    let (mut taken, mut bytes) = (Vec::with_capacity(PAGE_REQUESTS), 0);
    for _ in 0..PAGE_REQUESTS {
        let started = Instant::now();
        bytes = load::send(&mut stream, request.as_bytes(), *b"200")?.len();
        taken.push(started.elapsed());
    }
    taken.sort_unstable();
    let of = |percent: usize| taken[taken.len() * percent / 100].as_secs_f64() * 1e3;
    let kilobytes = bytes as f64 / 1e3;
    table::print_line(&format!("{:>8.2} ms p50 {:>8.2} ms p99 {kilobytes:>7.1} KB  {path}", of(50), of(99)))
}

/// Prints the processor time of the server without viewers, with viewers, and with viewers of what is written meanwhile.
fn viewers(
    options: &Options,
    (server, address): &(Child, SocketAddr),
    cookie: &str,
    posts: &mut Requests,
) -> Result<()> {
    let length = Duration::from_secs(options.seconds.max(20));
    let mut share = |writes: bool| -> Result<f64> {
        let (before, started) = (server.cpu()?, Instant::now());
        while started.elapsed() < length {
            if writes {
                load::send_once(*address, posts)?;
            }
            std::thread::sleep(WRITE_INTERVAL);
        }
        Ok((server.cpu()?.saturating_sub(before)).as_secs_f64() / started.elapsed().as_secs_f64() * 100.0)
    };
    let (idle, writing) = (share(false)?, share(true)?);
    for _ in 0..VIEWERS {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request("/dashboard/deliveries/live", cookie).as_bytes())?;
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            let mut buffer = vec![0; 16 * 1024];
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
        })?;
    }
    // The first event has the whole list.
    std::thread::sleep(Duration::from_secs(3));
    let (viewed, viewed_writing) = (share(false)?, share(true)?);
    table::print_line(&format!(
        "live, share of a core: {idle:.1} % without viewers, {viewed:.1} % with {VIEWERS}; with {} POSTs a second {writing:.1} % and {viewed_writing:.1} %",
        1_000 / WRITE_INTERVAL.as_millis()
    ))
}

/// Prints GET and POST without and with the request log, in turns.
fn request_log(options: &Options, file: &Path, tenants: &Arc<[seed::Tenant]>) -> Result<()> {
    let length = Duration::from_secs(options.seconds);
    table::print_header(options)?;
    for (subject, name) in [(Subject::Get, "GET by id"), (Subject::Post, "POST, durable")] {
        let requests = Requests::new(subject, tenants);
        let mut rounds: [Vec<Sample>; 2] = Default::default();
        for _ in 0..options.rounds {
            for (is_on, rounds) in [false, true].into_iter().zip(&mut rounds) {
                let (server, address) = serve(file, is_on)?;
                rounds.push(load::round(&server, address, options.connections as usize, length, &requests)?);
            }
        }
        let [off, on] = &rounds;
        table::print_rows(&[
            Row { subject: name, contender: "without the log", rounds: off, ratio: Ratio::Baseline },
            Row { subject: "", contender: "with the log", rounds: on, ratio: Ratio::To(off) },
        ])?;
    }
    Ok(())
}
