//! The attacks, which run in a process of their own.

mod crowds;
mod documents;
mod files;
mod floods;
mod http2;
mod smuggling;
mod unfinished;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::ValueEnum;
use svc_test_support::Result;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::AttackOptions;
use crate::server::{Connection, Target};

/// The list with the largest page, of bookings with the longest notes.
const LARGEST_LIST: &str = "/bookings?limit=200";

/// Contacts of each tenant, for lists to return.
pub(crate) const CONTACTS: usize = 300;

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// 5,000 connections that send nothing, and reconnect when they are closed.
    Silent,
    /// 5,000 connections that send a request every eight seconds.
    Idle,
    /// 2,000 request heads of 30 KiB that never end.
    SlowHeads,
    /// 500 request bodies of which 900 KiB arrive and the rest does not.
    SlowBodies,
    /// 1,000 clients that request lists and do not read the responses.
    SlowReaders,
    /// 60 clients with tiny receive buffers that request the largest lists and do not read the responses.
    LargeResponses,
    /// 8 connections with 64 pipelined requests each.
    Pipelining,
    /// 8 connections with request heads of 30 KiB and with endless heads.
    Heads,
    /// 8 connections with request targets of 9 KiB to 60 KiB.
    Uris,
    /// 8 endless request bodies in chunks of one byte.
    Chunks,
    /// 4 request bodies of 1 GiB with a Content-Length.
    GigabyteDeclared,
    /// 4 chunked request bodies of 1 GiB.
    GigabyteChunked,
    /// 4 clients with bodies that are not valid JSON, too deep, or costly to parse.
    Documents,
    /// Requests that two parsers could read differently.
    Smuggling,
    /// 4,000 TLS handshakes that stop half-way, and 4 clients that repeat complete handshakes.
    Handshakes,
    /// HTTP/2: 8 connections that cancel their requests at once.
    Resets,
    /// HTTP/2: 8 connections that open more streams than allowed.
    Streams,
    /// HTTP/2: 8 connections with endless request heads.
    Continuations,
    /// HTTP/2: 4 connections that send SETTINGS frames only.
    Settings,
    /// HTTP/2: 4 connections that send PING frames only.
    Pings,
    /// HTTP/2: 4 connections that send empty DATA frames only.
    EmptyFrames,
    /// Forms of strangers for the dashboard: 40 connections with a million empty fields, and 100 that stop one byte early.
    Forms,
    /// HTTP/2: 200 connections that request pages of the dashboard with a flow-control window of one byte.
    StuckPages,
    /// 150 browsers of an account with twenty viewers that download all its contacts, 4,000, again and again.
    Files,
    /// 250 browsers with tiny receive buffers that download the largest bookings and do not read the file.
    StuckFiles,
    /// 16 clients that ask for a delivery with 500 attempts, of which each has the largest response: half of them assistants.
    AttemptLogs,
    /// HTTP/2: 500 connections that request lists with a flow-control window of one byte.
    StuckAnswers,
    /// HTTP/2: 60 connections that request the largest lists with a flow-control window of one byte.
    LargeStuckAnswers,
    /// 10,000 request heads of 15 KB without their end: as many as a server has connections by default.
    UnfinishedHeads,
    /// 10,000 request heads of 100 bytes without their end.
    ShortHeads,
    /// 10,000 forms of 16 KB without their last byte, with heads of 15 KB, at all endpoints that take bodies.
    UnfinishedBodies,
    /// 10,000 ClientHellos of 15 KB without their end.
    ClientHellos,
    /// HTTP/2: 10,000 connections without a request.
    IdleHttp2,
    /// HTTP/2: 300 connections with 100 unfinished requests each, of 31 KB, at all endpoints that take bodies.
    UnfinishedStreams,
    /// 40 connections that search texts of one letter for the longest text that none of them has; every other one leaves at once.
    Search,
}

impl Attack {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Idle => "idle",
            Self::SlowHeads => "slow-heads",
            Self::SlowBodies => "slow-bodies",
            Self::SlowReaders => "slow-readers",
            Self::LargeResponses => "large-responses",
            Self::Pipelining => "pipelining",
            Self::Heads => "heads",
            Self::Uris => "uris",
            Self::Chunks => "chunks",
            Self::GigabyteDeclared => "gigabyte-declared",
            Self::GigabyteChunked => "gigabyte-chunked",
            Self::Documents => "documents",
            Self::Smuggling => "smuggling",
            Self::Handshakes => "handshakes",
            Self::Resets => "resets",
            Self::Streams => "streams",
            Self::Continuations => "continuations",
            Self::Settings => "settings",
            Self::Pings => "pings",
            Self::EmptyFrames => "empty-frames",
            Self::Forms => "forms",
            Self::StuckPages => "stuck-pages",
            Self::Files => "files",
            Self::StuckFiles => "stuck-files",
            Self::AttemptLogs => "attempt-logs",
            Self::StuckAnswers => "stuck-answers",
            Self::LargeStuckAnswers => "large-stuck-answers",
            Self::UnfinishedHeads => "unfinished-heads",
            Self::ShortHeads => "short-heads",
            Self::UnfinishedBodies => "unfinished-bodies",
            Self::ClientHellos => "client-hellos",
            Self::IdleHttp2 => "idle-http2",
            Self::UnfinishedStreams => "unfinished-streams",
            Self::Search => "search",
        }
    }

    /// Returns whether the attackers' tenant has a page of the largest records.
    pub(crate) fn needs_large_records(self) -> bool {
        matches!(self, Self::LargeResponses | Self::LargeStuckAnswers | Self::StuckFiles)
    }

    /// Returns how many contacts the attackers' tenant has.
    pub(crate) fn contacts(self) -> usize {
        if self == Self::Files { 4_000 } else { CONTACTS }
    }

    /// Returns how many attempts there were at a delivery of the attackers' tenant.
    pub(crate) fn attempts(self) -> u32 {
        if self == Self::AttemptLogs { 500 } else { 0 }
    }

    /// Returns whether the attackers' tenant has texts in which a search finds every part of a text everywhere.
    pub(crate) fn needs_texts(self) -> bool {
        matches!(self, Self::Search)
    }

    /// Returns whether the attackers have an address of their own. At the address that leaves most unfinished, a client that needs
    /// more than half a second for a handshake may lose it, and on a busy machine some do.
    pub(crate) fn has_an_address(self) -> bool {
        matches!(self, Self::UnfinishedHeads | Self::ShortHeads | Self::UnfinishedBodies)
            || matches!(self, Self::ClientHellos | Self::IdleHttp2 | Self::UnfinishedStreams)
    }

    /// Returns whether the attack uses TLS, which HTTP/2 requires here.
    pub(crate) fn needs_tls(self) -> bool {
        use Attack::{ClientHellos, IdleHttp2, UnfinishedStreams};
        use Attack::{Continuations, EmptyFrames, Handshakes, Pings, Resets, Settings, Streams};
        use Attack::{LargeStuckAnswers, StuckAnswers, StuckPages};
        matches!(self, Handshakes | Resets | Streams | Continuations | Settings | Pings | EmptyFrames)
            || matches!(self, StuckAnswers | LargeStuckAnswers | StuckPages)
            || matches!(self, ClientHellos | IdleHttp2 | UnfinishedStreams)
    }
}

/// What all attackers share.
#[derive(Clone)]
pub(crate) struct Attackers {
    target: Arc<Target>,
    until: Instant,
    observed: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Runs an attack and prints what it observed. Returns `false` if a response was wrong.
pub(crate) async fn run(options: &AttackOptions) -> Result<bool> {
    let until = Instant::now() + Duration::from_millis(options.millis);
    let all = Attackers { target: Arc::new(options.target.clone()), until, observed: Arc::default() };
    let result = match options.attack {
        Attack::Silent => crowds::silent(&all).await,
        Attack::Idle => crowds::idle(&all).await,
        Attack::SlowHeads => crowds::slow_heads(&all).await,
        Attack::SlowBodies => crowds::slow_bodies(&all).await,
        Attack::SlowReaders => crowds::slow_readers(&all, 1_000, "/contacts?limit=200").await,
        Attack::LargeResponses => crowds::slow_readers(&all, 60, LARGEST_LIST).await,
        Attack::Handshakes => crowds::handshakes(&all).await,
        Attack::Pipelining => floods::pipelining(&all).await,
        Attack::Heads => floods::heads(&all).await,
        Attack::Uris => floods::uris(&all).await,
        Attack::Chunks => floods::chunks(&all).await,
        Attack::GigabyteDeclared => floods::gigabytes(&all, true).await,
        Attack::GigabyteChunked => floods::gigabytes(&all, false).await,
        Attack::Documents => documents::run(&all).await,
        Attack::Smuggling => smuggling::run(&all).await,
        Attack::Resets => http2::resets(&all).await,
        Attack::Streams => http2::streams(&all).await,
        Attack::Continuations => http2::continuations(&all).await,
        Attack::Settings => http2::settings(&all).await,
        Attack::Pings => http2::pings(&all).await,
        Attack::EmptyFrames => http2::empty_frames(&all).await,
        Attack::Forms => crowds::forms(&all).await,
        Attack::StuckPages => http2::stuck_answers(&all, 200, "/dashboard/sign-in").await,
        Attack::Files => files::downloads(&all).await,
        Attack::StuckFiles => files::unread(&all).await,
        Attack::AttemptLogs => files::attempt_logs(&all).await,
        Attack::StuckAnswers => http2::stuck_answers(&all, 500, "/api/v1/contacts?limit=200").await,
        Attack::Search => floods::searches(&all).await,
        Attack::LargeStuckAnswers => http2::stuck_answers(&all, 60, "/api/v1/bookings?limit=200").await,
        Attack::UnfinishedHeads => unfinished::heads(&all, 15_000).await,
        Attack::ShortHeads => unfinished::heads(&all, 100).await,
        Attack::UnfinishedBodies => unfinished::bodies(&all).await,
        Attack::ClientHellos => unfinished::client_hellos(&all).await,
        Attack::IdleHttp2 => unfinished::idle_http2(&all).await,
        Attack::UnfinishedStreams => unfinished::streams(&all).await,
    };
    let mut out = std::io::stdout().lock();
    match result {
        Ok(()) => writeln!(out, "{}", all.summary())?,
        Err(error) => {
            writeln!(out, "{error}")?;
            return Ok(false);
        }
    }
    Ok(true)
}

impl Attackers {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Counts an event.
    fn record(&self, what: impl Into<String>) {
        self.record_many(what, 1);
    }

    fn record_many(&self, what: impl Into<String>, count: usize) {
        if let Ok(mut observed) = self.observed.lock() {
            *observed.entry(what.into()).or_default() += count;
        }
    }

    fn summary(&self) -> String {
        let Ok(observed) = self.observed.lock() else { return String::new() };
        observed.iter().map(|(what, count)| format!("{what}: {count}")).collect::<Vec<_>>().join(", ")
    }

    /// Runs `count` attackers concurrently; each starts again until the time is over.
    async fn each<F, A>(&self, count: usize, attack: F) -> Result<()>
    where
        F: Fn(Attackers, usize) -> A + Clone + Send + 'static,
        A: Future<Output = Result<()>> + Send + 'static,
    {
        let mut all = JoinSet::new();
        for number in 0..count {
            let (attackers, attack) = (self.clone(), attack.clone());
            all.spawn(async move {
                while !attackers.is_over() {
                    // A connection that the server cuts off is expected. An attack that fails at once must not spin.
                    let ended = tokio::time::timeout_at(attackers.until, attack(attackers.clone(), number)).await;
                    if let Ok(Err(error)) = ended {
                        attackers.record(short(&*error));
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            });
            // Starts in groups, because the accept queue could not hold all at once.
            if number % 100 == 99 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        all.join_all().await;
        Ok(())
    }

    /// Reads until the server closes the connection, and counts the statuses of HTTP/1.1 responses.
    async fn drain(&self, connection: &mut (impl Connection + ?Sized)) -> Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match connection.read(&mut buffer).await {
                Ok(count) if count > 0 => self.record_statuses(&buffer[..count]),
                _ => break,
            }
        }
        self.record("closed");
        Ok(())
    }

    /// Counts the statuses in a part of the received bytes. A status line that is split between two parts is missed.
    fn record_statuses(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for (at, found) in text.match_indices("HTTP/1.1 ") {
            let rest = &text[at + found.len()..];
            self.record(rest.get(..3).unwrap_or("?"));
        }
    }
}

/// Returns the error's text without details that differ each time.
fn short(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<std::io::Error>() {
        Some(error) => format!("{:?}", error.kind()),
        None => error.to_string(),
    }
}
