//! The sender: how fast it works off a backlog, and how long a delivery takes from the commit to the receiver.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::child::Child;
use crate::options::{Options, Subject};
use crate::poster::Post;
use crate::receiver::{Mark, Receiver};
use crate::requests::{Requests, digits_in};
use crate::sample::{Sample, micros};
use crate::seed::{self, Tenant};
use crate::table::{self, Ratio, Row};
use crate::{Result, load, pending};

/// Contacts that are created a second.
const RATES: [u32; 2] = [500, 1000];
/// Connections that carry them.
const CLIENTS: u32 = 16;
/// Endpoints of another tenant that never answer, and what is due for each.
const HANGING: u32 = 500;
const DUE_EACH: u32 = 20;
/// How often the sleeping sender is woken, after how long a sleep.
const WAKES: usize = 50;
const SLEEP: Duration = Duration::from_millis(100);
/// How long windows may grow before each round.
const WARM_UP: Duration = Duration::from_secs(1);
/// What has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts with everything pending, and works it off in turns with the bare client.
pub(crate) fn backlog(options: &Options, file: &Path) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::point(file, receiver.address)?;
    pending::backlog(file, options.pending)?;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    let (mut first, mut arrived) = (None, 0);
    for _ in 0..options.rounds {
        let (before, started) = (receiver.count(), Instant::now());
        let (child, _) = start(file)?;
        let listening = started.elapsed();
        receiver.until(PATIENCE, |receiver| receiver.count() > before)?;
        first.get_or_insert((listening, started.elapsed()));
        ours.push(round(options, &child, &receiver)?);
        // It ends what it has begun.
        drop(child);
        arrived += receiver.count() - before;

        let mut child = Child::start(&[OsStr::new("post-bare")])?;
        let request = receiver.sample().ok_or("nothing has arrived")?;
        let post = Post::again(request, format!("http://{}/hook", receiver.address), options.connections)?;
        child.tell(&serde_json::to_string(&post)?)?;
        child.hear()?;
        bare.push(round(options, &child, &receiver)?);
        drop(child);
        receiver.take();
    }
    let logged = pending::delivered(file)?;
    if logged.map(|rows| rows as usize) != [arrived; 2] {
        return Err(format!("{arrived} deliveries arrived; deliveries and attempts that succeeded: {logged:?}").into());
    }
    if arrived as u64 >= u64::from(options.pending) {
        return Err(format!("{arrived} deliveries were all there were; give more with --pending").into());
    }
    table::print(&[
        Row { subject: "deliveries", contender: "bare client", rounds: &bare, ratio: Ratio::Yardstick },
        Row { subject: "", contender: "svc", rounds: &ours, ratio: Ratio::To(&bare) },
    ])?;
    let (listening, first) = first.unwrap_or_default();
    let (pending, listening, first) = (options.pending, listening.as_secs_f64(), first.as_secs_f64());
    table::note(&format!("with {pending} pending: listens after {listening:.3} s, delivers after {first:.3} s"))
}

/// Everything at once, as fast as it goes: requests are accepted and committed, deliveries signed, sent and logged.
pub(crate) fn pipe(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::point(file, receiver.address)?;
    let requests = Requests::new(Subject::Pipe, tenants);
    let (connections, length) = (options.connections as usize, Duration::from_secs(options.seconds));
    let (child, address) = start(file)?;
    let (mut accepted, mut delivered) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let (posts, deliveries) = std::thread::scope(|scope| {
            let posts = scope.spawn(|| load::round(&child, address, connections, length + WARM_UP, &requests));
            let deliveries = round(options, &child, &receiver)?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((posts.join().map_err(|_| "it panicked")??, deliveries))
        })?;
        accepted.push(posts);
        delivered.push(deliveries);
        receiver.take();
    }
    let [_, _, all] = seed::written(file)?;
    receiver.until(PATIENCE, |receiver| receiver.count() >= all as usize)?;
    table::print(&[
        Row { subject: "the whole pipe", contender: "accepted", rounds: &accepted, ratio: Ratio::None },
        Row { subject: "", contender: "delivered", rounds: &delivered, ratio: Ratio::None },
    ])
}

/// From the answer of a POST to the arrival of its delivery: at fixed rates, out of sleep, and beside endpoints
/// that hang.
pub(crate) fn latency(options: &Options, file: &Path, tenants: &Arc<[Tenant]>) -> Result<()> {
    let receiver = Receiver::start()?;
    pending::point(file, receiver.address)?;
    let requests = Requests::new(Subject::Deliver, tenants);
    let beside = format!(", {HANGING} hang");
    let mut rows: Vec<(&str, String, Vec<Sample>)> = Vec::new();
    for hanging in [false, true] {
        if hanging {
            pending::hanging(file, receiver.hanging, HANGING, DUE_EACH)?;
        }
        let (child, address) = start(file)?;
        if hanging {
            receiver.until(PATIENCE, |receiver| receiver.hung() >= HANGING as usize)?;
        } else {
            rows.push(("idle wake", String::new(), vec![wakes(&child, address, &receiver, &requests)?]));
        }
        for (number, rate) in RATES.into_iter().enumerate() {
            let name = format!("{rate}/s{}", if hanging { &beside } else { "" });
            let subject = if number == 0 && !hanging { "POST to arrival" } else { "" };
            let rounds = (0..options.rounds).map(|_| steady(options, rate, &child, address, &receiver, &requests));
            rows.push((subject, name, rounds.collect::<Result<_>>()?));
        }
    }
    let row = |(subject, contender, rounds)| Row { subject, contender, rounds, ratio: Ratio::None };
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(subject, contender, rounds)| row((*subject, contender.as_str(), rounds.as_slice())))
        .collect();
    table::print(&rows)
}

/// The server with its sender.
fn start(file: &Path) -> Result<(Child, SocketAddr)> {
    let mut child = Child::start(&[OsStr::new("serve-ours"), file.as_os_str(), OsStr::new("--sending")])?;
    let address = child.hear()?.parse()?;
    Ok((child, address))
}

/// Starts the server on a backlog, and measures it as soon as deliveries arrive.
pub(crate) fn burst(options: &Options, file: &Path, receiver: &Receiver) -> Result<Sample> {
    let before = receiver.count();
    let (child, _) = start(file)?;
    receiver.until(PATIENCE, |receiver| receiver.count() > before)?;
    let sample = round(options, &child, receiver)?;
    receiver.take();
    Ok(sample)
}

/// How many arrive while `child` posts.
fn round(options: &Options, child: &Child, receiver: &Receiver) -> Result<Sample> {
    std::thread::sleep(WARM_UP);
    let (cpu, count, started) = (child.cpu()?, receiver.count(), Instant::now());
    std::thread::sleep(Duration::from_secs(options.seconds));
    let (cpu, count, elapsed) = (child.cpu()?.saturating_sub(cpu), receiver.count() - count, started.elapsed());
    Ok(Sample { count, ..Sample::new(Vec::new(), elapsed, cpu, child.peak_memory()?) })
}

/// Creates contacts at a fixed rate, and waits for the deliveries of all.
fn steady(
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
    let answered = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (first, gap) =
                    (started + Duration::from_secs(1) * number / rate, Duration::from_secs(1) * CLIENTS / rate);
                let requests = requests.fork();
                scope.spawn(move || client(address, requests, first, gap, end))
            })
            .collect();
        let mut answered = Vec::new();
        for client in clients {
            answered.extend(client.join().map_err(|_| "a client panicked")??);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answered)
    })?;
    let elapsed = started.elapsed();
    let took = arrivals(receiver, &answered)?;
    Ok(Sample::new(took, elapsed, child.cpu()?.saturating_sub(cpu), child.peak_memory()?))
}

/// Asks at its moments, or as soon as it can after them. Returns when each request was answered.
fn client(
    address: SocketAddr,
    mut requests: Requests,
    first: Instant,
    gap: Duration,
    end: Instant,
) -> Result<Vec<(Mark, Instant)>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut answered, mut next) = (Vec::new(), first);
    while next < end {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        answered.push(create(&mut stream, &mut requests)?);
        next += gap;
    }
    Ok(answered)
}

/// Creates a contact; its mark, and when the answer was there.
fn create(stream: &mut TcpStream, requests: &mut Requests) -> Result<(Mark, Instant)> {
    let status = requests.status;
    let request = requests.next();
    let mark = digits_in(request).ok_or("a request without a mark")?;
    load::ask(stream, request, status)?;
    Ok((mark, Instant::now()))
}

/// How long after its answer each delivery arrived, in microseconds; 1 where it was faster than the answer.
fn arrivals(receiver: &Receiver, answered: &[(Mark, Instant)]) -> Result<Vec<u32>> {
    let mut arrived: HashMap<Mark, Instant> = HashMap::new();
    let deadline = Instant::now() + PATIENCE;
    while !answered.iter().all(|(mark, _)| arrived.contains_key(mark)) {
        if Instant::now() > deadline {
            return Err(format!("of {} deliveries only {} arrived", answered.len(), arrived.len()).into());
        }
        std::thread::sleep(Duration::from_millis(5));
        arrived.extend(receiver.take());
    }
    let late = |(mark, at): &(Mark, Instant)| arrived.get(mark).map(|then| then.saturating_duration_since(*at));
    Ok(answered.iter().filter_map(late).map(|late| micros(late).max(1)).collect())
}

/// Creates a contact while the sender sleeps, again and again.
fn wakes(child: &Child, address: SocketAddr, receiver: &Receiver, requests: &Requests) -> Result<Sample> {
    let (mut stream, mut requests, mut took) = (TcpStream::connect(address)?, requests.fork(), Vec::new());
    stream.set_nodelay(true)?;
    let (cpu, started) = (child.cpu()?, Instant::now());
    for _ in 0..WAKES {
        std::thread::sleep(SLEEP);
        let answered = create(&mut stream, &mut requests)?;
        took.extend(arrivals(receiver, &[answered])?);
    }
    Ok(Sample::new(took, started.elapsed(), child.cpu()?.saturating_sub(cpu), child.peak_memory()?))
}
