//! The load generator: keep-alive connections on bare epoll, each with one request in progress. It shares the machine
//! with the server, so it does as little as possible: it copies no request, and of a response it parses only the
//! status and the length.
//!
//! At a fixed rate, a latency counts from the time at which the request was due, whether or not a connection was free. A
//! thread that waits sees up to a millisecond late that a request is due, which counts as well.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::child::Child;
use crate::error::Result;
use crate::requests::Requests;
use crate::sample::{Sample, micros};

/// Threads of the load generator, as many as common tools use on a small machine.
const THREADS: usize = 2;
/// The warm-up time of the server before each round.
const WARM_UP: Duration = Duration::from_millis(500);
/// More than the largest response.
const BUFFER: usize = 128 * 1024;
/// How often a thread checks whether the round is over.
const PATIENCE: Duration = Duration::from_millis(100);

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const OVER: u8 = 2;

/// Measures one round against the server in `child`.
pub(crate) fn round(
    child: &Child,
    address: SocketAddr,
    connections: usize,
    length: Duration,
    requests: &Requests,
) -> Result<Sample> {
    let phase = AtomicU8::new(WARMING);
    std::thread::scope(|scope| {
        let share = |thread| connections / THREADS + usize::from(thread < connections % THREADS);
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (phase, requests) = (&phase, requests.fork());
                    move || run_worker(address, share(thread), requests, phase)
                })
            })
            .collect();
        std::thread::sleep(WARM_UP);
        let (before, started) = (child.cpu()?, Instant::now());
        phase.store(MEASURING, Ordering::Relaxed);
        std::thread::sleep(length);
        phase.store(OVER, Ordering::Relaxed);
        let (cpu, elapsed) = (child.cpu()?.saturating_sub(before), started.elapsed());
        let mut took = Vec::new();
        for worker in workers {
            took.extend(worker.join().map_err(|_| "a thread of the load generator panicked")??);
        }
        Ok(Sample::new(took, elapsed, cpu, child.peak_memory()?))
    })
}

/// Sends one request on a new connection and returns the complete response.
pub(crate) fn send_once(address: SocketAddr, requests: &mut Requests) -> Result<Vec<u8>> {
    let status = requests.status;
    send(&mut std::net::TcpStream::connect(address)?, requests.next(), status)
}

/// Sends one request and returns the complete response.
pub(crate) fn send(stream: &mut std::net::TcpStream, request: &[u8], status: [u8; 3]) -> Result<Vec<u8>> {
    stream.write_all(request)?;
    let (mut response, mut filled) = (vec![0; BUFFER], 0);
    loop {
        // Pages of the dashboard are longer than responses of the API.
        if filled == response.len() {
            response.resize(2 * filled, 0);
        }
        let read = stream.read(&mut response[filled..])?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        filled += read;
        if let Some(head) = Head::parse(&response[..filled])?
            && filled >= head.total
        {
            response.truncate(filled);
            head.expect(status, &response)?;
            return Ok(response);
        }
    }
}

/// The head of a response.
struct Head {
    status: [u8; 3],
    /// Bytes of head and body.
    total: usize,
}

impl Head {
    /// Returns `None` while the head is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let status = bytes.get(9..12).and_then(|status| status.try_into().ok()).ok_or("the response has no status")?;
        let length = bytes[..end]
            .split(|byte| *byte == b'\n')
            .find_map(content_length)
            .ok_or("the response has no Content-Length")?;
        Ok(Some(Self { status, total: end + 4 + length }))
    }

    fn expect(&self, status: [u8; 3], response: &[u8]) -> Result<()> {
        if self.status == status {
            return Ok(());
        }
        Err(format!("unexpected response: {}", String::from_utf8_lossy(response)).into())
    }
}

/// Returns the value of a header line, if it is Content-Length.
pub(crate) fn content_length(line: &[u8]) -> Option<usize> {
    let name = b"content-length:";
    if line.len() < name.len() || !line[..name.len()].eq_ignore_ascii_case(name) {
        return None;
    }
    std::str::from_utf8(&line[name.len()..]).ok()?.trim().parse().ok()
}

struct Connection {
    stream: TcpStream,
    response: Vec<u8>,
    filled: usize,
    head: Option<Head>,
    sent_at: Instant,
}

fn run_worker(address: SocketAddr, connections: usize, mut requests: Requests, phase: &AtomicU8) -> Result<Vec<u32>> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(connections.max(1));
    let mut open = Vec::with_capacity(connections);
    for number in 0..connections {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
        let mut connection =
            Connection { stream, response: vec![0; BUFFER], filled: 0, head: None, sent_at: Instant::now() };
        if requests.rate.is_none() {
            connection.send(requests.next(), Instant::now())?;
        }
        open.push(connection);
    }
    let mut took = Vec::new();
    let mut schedule = requests.rate.map(|rate| Schedule::new(rate / THREADS as f64, connections));
    loop {
        let patience = schedule.as_ref().map_or(PATIENCE, Schedule::until_due);
        match poll.poll(&mut events, Some(patience)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        let now = phase.load(Ordering::Relaxed);
        if now == OVER {
            return Ok(took);
        }
        for event in &events {
            let connection = &mut open[event.token().0];
            if connection.receive(requests.status)? {
                if now == MEASURING {
                    took.push(micros(connection.sent_at.elapsed()));
                }
                match &mut schedule {
                    Some(schedule) => schedule.free.push(event.token().0),
                    None => connection.send(requests.next(), Instant::now())?,
                }
            }
        }
        while let Some((number, due)) = schedule.as_mut().and_then(Schedule::next) {
            open[number].send(requests.next(), due)?;
        }
    }
}

/// When requests are sent at a fixed rate, and the connections that are free for them.
struct Schedule {
    interval: Duration,
    due: Instant,
    free: Vec<usize>,
}

impl Schedule {
    fn new(rate: f64, connections: usize) -> Self {
        Self { interval: Duration::from_secs_f64(1.0 / rate), due: Instant::now(), free: (0..connections).collect() }
    }

    /// Returns how long to wait for a response. Without a free connection nothing can be sent before one.
    fn until_due(&self) -> Duration {
        if self.free.is_empty() { PATIENCE } else { self.due.saturating_duration_since(Instant::now()).min(PATIENCE) }
    }

    /// Returns a free connection if a request is due, and since when it is.
    fn next(&mut self) -> Option<(usize, Instant)> {
        let due = self.due;
        let number = (due <= Instant::now()).then(|| self.free.pop()).flatten()?;
        self.due = due + self.interval;
        Some((number, due))
    }
}

impl Connection {
    /// No other request is in progress, so the socket accepts a whole request.
    fn send(&mut self, request: &[u8], sent_at: Instant) -> Result<()> {
        (self.filled, self.head, self.sent_at) = (0, None, sent_at);
        let written = self.stream.write(request)?;
        if written == request.len() { Ok(()) } else { Err("a request could not be written completely".into()) }
    }

    /// Reads available bytes, and returns whether the response is complete. A read that returns fewer bytes than
    /// requested has emptied the socket, and epoll will report more.
    fn receive(&mut self, status: [u8; 3]) -> Result<bool> {
        loop {
            let room = self.response.len() - self.filled;
            let read = match self.stream.read(&mut self.response[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                other => other?,
            };
            if read == 0 {
                return Err("the server hung up, or its response is too large".into());
            }
            self.filled += read;
            if self.head.is_none() {
                self.head = Head::parse(&self.response[..self.filled])?;
            }
            if let Some(head) = self.head.as_ref().filter(|head| self.filled >= head.total) {
                head.expect(status, &self.response[..self.filled])?;
                return Ok(true);
            }
            if read < room {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_heads_are_parsed() {
        let head = Head::parse(b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nx: y\r\n\r\nhel").unwrap().unwrap();
        assert_eq!((&head.status, head.total), (b"201", 54));
        assert!(head.expect(*b"200", b"").is_err());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap().is_none());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
