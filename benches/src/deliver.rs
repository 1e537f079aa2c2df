//! Blocks `deliver` and `pipe`: the throughput of the sender, and the time from a commit to the arrival of its
//! delivery.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bare_client::RepeatedPost;
use crate::child::Child;
use crate::error::Result;
use crate::options::{Options, Subject};
use crate::random::digits_in;
use crate::receiver::{Receiver, Tag};
use crate::requests::Requests;
use crate::sample::{Sample, micros};
use crate::seed::{self, Tenant};
use crate::table::{self, Ratio, Row};
use crate::{load, pending};

/// Contacts created per second.
const RATES: [u32; 2] = [500, 1000];
/// Connections that create them.
const CLIENTS: u32 = 16;
/// Endpoints of another tenant that never respond, and the number of pending deliveries of each.
const HANGING: u32 = 500;
const PENDING_EACH: u32 = 20;
/// How often the idle sender is woken, and the idle time before each.
const WAKEUPS: usize = 50;
const IDLE_TIME: Duration = Duration::from_millis(100);
/// How long endpoint windows may grow before each round.
const WARM_UP: Duration = Duration::from_secs(1);
/// Deliveries that have not arrived by then are lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures the sender on a backlog, alternating with the bare client.
pub(crate) fn backlog(options: &Options, file: &Path) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::set_endpoint(file, receiver.address)?;
    pending::add_backlog(file, options.pending)?;
    let (mut bare, mut svc) = (Vec::new(), Vec::new());
    let (mut first, mut arrived) = (None, 0);
    for _ in 0..options.rounds {
        let (before, started) = (receiver.count(), Instant::now());
        let (child, _) = start(file)?;
        let listening = started.elapsed();
        receiver.wait_until(PATIENCE, |receiver| receiver.count() > before)?;
        first.get_or_insert((listening, started.elapsed()));
        svc.push(round(options, &child, &receiver)?);
        // Stopping completes the attempts in progress.
        drop(child);
        arrived += receiver.count() - before;

        let mut child = Child::start(&[OsStr::new("post-bare")])?;
        let request = receiver.sample().ok_or("no delivery has arrived")?;
        let post =
            RepeatedPost::from_received(request, format!("http://{}/hook", receiver.address), options.connections)?;
        child.write_line(&serde_json::to_string(&post)?)?;
        child.read_line()?;
        bare.push(round(options, &child, &receiver)?);
        drop(child);
        receiver.wait_until_closed(PATIENCE)?;
        receiver.take();
    }
    let logged = pending::success_counts(file)?;
    if logged.map(|rows| rows as usize) != [arrived; 2] {
        return Err(format!("{arrived} deliveries arrived; deliveries and attempts that succeeded: {logged:?}").into());
    }
    if arrived as u64 >= u64::from(options.pending) {
        return Err(
            format!("all {arrived} pending deliveries were sent during the measurement; increase --pending").into()
        );
    }
    table::print_rows(&[
        Row { subject: "deliveries", contender: "bare client", rounds: &bare, ratio: Ratio::Baseline },
        Row { subject: "", contender: "svc", rounds: &svc, ratio: Ratio::To(&bare) },
    ])?;
    let (listening, first) = first.unwrap_or_default();
    let (pending, listening, first) = (options.pending, listening.as_secs_f64(), first.as_secs_f64());
    table::print_line(&format!(
        "with {pending} deliveries pending, the server listens after {listening:.3} s and the first delivery arrives after {first:.3} s"
    ))
}

/// Measures POSTs and their deliveries together at full speed: accept, commit, sign, send and log.
pub(crate) fn pipe(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::set_endpoint(file, receiver.address)?;
    let requests = Requests::new(Subject::Pipe, tenants);
    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let (child, address) = start(file)?;
    let (mut accepted, mut delivered) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let (posts, deliveries) = std::thread::scope(|scope| {
            let posts = scope.spawn(|| load::round(&child, address, connections, length + WARM_UP, &requests));
            let deliveries = round(options, &child, &receiver)?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
                posts.join().map_err(|_| "the load generator panicked")??,
                deliveries,
            ))
        })?;
        accepted.push(posts);
        delivered.push(deliveries);
        receiver.take();
    }
    let [_, _, all] = seed::row_counts(file)?;
    receiver.wait_until(PATIENCE, |receiver| receiver.count() >= all as usize)?;
    table::print_rows(&[
        Row { subject: "the whole pipe", contender: "accepted", rounds: &accepted, ratio: Ratio::None },
        Row { subject: "", contender: "delivered", rounds: &delivered, ratio: Ratio::None },
    ])
}

/// Measures the time from the response of a POST to the arrival of its delivery: from idle, at fixed rates, and
/// with endpoints that hang.
pub(crate) fn latency(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::set_endpoint(file, receiver.address)?;
    let requests = Requests::new(Subject::Deliver, tenants);
    let suffix = format!(", {HANGING} hang");
    let mut rows: Vec<(&str, String, Vec<Sample>)> = Vec::new();
    for hanging in [false, true] {
        if hanging {
            pending::add_hanging_endpoints(file, receiver.hanging, HANGING, PENDING_EACH)?;
        }
        let (child, address) = start(file)?;
        if hanging {
            receiver.wait_until(PATIENCE, |receiver| receiver.hanging_count() >= HANGING as usize)?;
        } else {
            rows.push(("idle wake", String::new(), vec![idle_wakeups(&child, address, &receiver, &requests)?]));
        }
        for (number, rate) in RATES.into_iter().enumerate() {
            let name = format!("{rate}/s{}", if hanging { &suffix } else { "" });
            let subject = if number == 0 && !hanging { "POST to arrival" } else { "" };
            let rounds = (0..options.rounds).map(|_| fixed_rate(options, rate, &child, address, &receiver, &requests));
            rows.push((subject, name, rounds.collect::<Result<_>>()?));
        }
    }
    let row = |(subject, contender, rounds)| Row { subject, contender, rounds, ratio: Ratio::None };
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(subject, contender, rounds)| row((*subject, contender.as_str(), rounds.as_slice())))
        .collect();
    table::print_rows(&rows)
}

/// Starts the server with its sender.
pub(crate) fn start(file: &Path) -> Result<(Child, SocketAddr)> {
    let mut child = Child::start(&[OsStr::new("serve-svc"), file.as_os_str(), OsStr::new("--sending")])?;
    let address = child.read_line()?.parse()?;
    Ok((child, address))
}

/// Starts the server on a backlog, and measures it from the first arrival on.
pub(crate) fn burst(options: &Options, file: &Path, receiver: &Receiver) -> Result<Sample> {
    let before = receiver.count();
    let (child, _) = start(file)?;
    receiver.wait_until(PATIENCE, |receiver| receiver.count() > before)?;
    let sample = round(options, &child, receiver)?;
    receiver.take();
    Ok(sample)
}

/// Measures how many deliveries `child` sends in a round.
fn round(options: &Options, child: &Child, receiver: &Receiver) -> Result<Sample> {
    std::thread::sleep(WARM_UP);
    let (cpu, count, started) = (child.cpu()?, receiver.count(), Instant::now());
    std::thread::sleep(Duration::from_secs(options.seconds));
    let (cpu, count, elapsed) = (child.cpu()?.saturating_sub(cpu), receiver.count() - count, started.elapsed());
    Ok(Sample { count, ..Sample::new(Vec::new(), elapsed, cpu, child.peak_memory()?) })
}

/// Creates contacts at a fixed rate, and waits for the deliveries of all of them.
fn fixed_rate(
    options: &Options,
    rate: u32,
    child: &Child,
    address: SocketAddr,
    receiver: &Receiver,
    requests: &Requests,
) -> Result<Sample> {
    receiver.take();
    let (cpu, started) = (child.cpu()?, Instant::now());
    let end = started + Duration::from_secs(options.seconds);
    let acknowledged = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (first, gap) =
                    (started + Duration::from_secs(1) * number / rate, Duration::from_secs(1) * CLIENTS / rate);
                let requests = requests.fork();
                scope.spawn(move || client(address, requests, first, gap, end))
            })
            .collect();
        let mut acknowledged = Vec::new();
        for client in clients {
            acknowledged.extend(client.join().map_err(|_| "a client panicked")??);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(acknowledged)
    })?;
    let elapsed = started.elapsed();
    let took = arrivals(receiver, &acknowledged)?;
    Ok(Sample::new(took, elapsed, child.cpu()?.saturating_sub(cpu), child.peak_memory()?))
}

/// Sends each request at its scheduled time, or as soon as the one before has completed. Returns when each response
/// arrived.
fn client(
    address: SocketAddr,
    mut requests: Requests,
    first: Instant,
    gap: Duration,
    end: Instant,
) -> Result<Vec<(Tag, Instant)>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut acknowledged, mut next) = (Vec::new(), first);
    while next < end {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        acknowledged.push(create(&mut stream, &mut requests)?);
        next += gap;
    }
    Ok(acknowledged)
}

/// Creates a contact. Returns its tag, and when the response arrived.
fn create(stream: &mut TcpStream, requests: &mut Requests) -> Result<(Tag, Instant)> {
    let status = requests.status;
    let request = requests.next();
    let tag = digits_in(request).ok_or("the request has no email")?;
    load::send(stream, request, status)?;
    Ok((tag, Instant::now()))
}

/// Returns how long after its response each delivery arrived, in microseconds; 1 if it arrived before the response.
fn arrivals(receiver: &Receiver, acknowledged: &[(Tag, Instant)]) -> Result<Vec<u32>> {
    let mut arrived: HashMap<Tag, Instant> = HashMap::new();
    let deadline = Instant::now() + PATIENCE;
    while !acknowledged.iter().all(|(tag, _)| arrived.contains_key(tag)) {
        if Instant::now() > deadline {
            return Err(format!("of {} deliveries only {} arrived", acknowledged.len(), arrived.len()).into());
        }
        std::thread::sleep(Duration::from_millis(5));
        arrived.extend(receiver.take());
    }
    let late = |(tag, at): &(Tag, Instant)| arrived.get(tag).map(|then| then.saturating_duration_since(*at));
    Ok(acknowledged.iter().filter_map(late).map(|late| micros(late).max(1)).collect())
}

/// Creates a contact now and then, and measures each time how long its delivery takes.
pub(crate) fn idle_wakeups(
    child: &Child,
    address: SocketAddr,
    receiver: &Receiver,
    requests: &Requests,
) -> Result<Sample> {
    let (mut stream, mut requests, mut took) = (TcpStream::connect(address)?, requests.fork(), Vec::new());
    stream.set_nodelay(true)?;
    let (cpu, started) = (child.cpu()?, Instant::now());
    for _ in 0..WAKEUPS {
        std::thread::sleep(IDLE_TIME);
        let acknowledged = create(&mut stream, &mut requests)?;
        took.extend(arrivals(receiver, &[acknowledged])?);
    }
    Ok(Sample::new(took, started.elapsed(), child.cpu()?.saturating_sub(cpu), child.peak_memory()?))
}
