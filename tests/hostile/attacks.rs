//! The attackers: a process of their own.

mod crowds;
mod documents;
mod floods;
mod http2;
mod smuggling;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::ValueEnum;
use svc_tests::Result;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::AttackOptions;
use crate::server::{Connection, Target};

/// One way to be hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// 5,000 connections that say nothing, and come again when they are closed.
    Silent,
    /// 5,000 connections that ask once every eight seconds.
    Idle,
    /// 2,000 heads of 30 KiB that never end.
    SlowHeads,
    /// 500 bodies of which 900 KiB arrive, and the rest does not.
    SlowBodies,
    /// 1,000 clients that ask for lists and take no answer.
    SlowReaders,
    /// 8 connections with 64 requests under way on each.
    Pipelining,
    /// 8 connections with heads of 30 KiB and with heads without end.
    Heads,
    /// 8 connections with targets of 9 KiB to 60 KiB.
    Uris,
    /// 8 bodies in chunks of one byte, without end.
    Chunks,
    /// 4 bodies of 1 GiB, which their heads announce.
    GigabyteDeclared,
    /// 4 bodies of 1 GiB, which nothing announces.
    GigabyteChunked,
    /// 4 clients with documents that are no JSON, too deep, or costly to read.
    Documents,
    /// Requests that two readers could understand differently.
    Smuggling,
    /// 4,000 TLS handshakes that stop half-way, and 4 clients that do nothing but shake hands.
    Handshakes,
    /// HTTP/2: 8 connections that take back what they ask for.
    Resets,
    /// HTTP/2: 8 connections that ask for more at once than they may.
    Streams,
    /// HTTP/2: 8 connections with heads without end.
    Continuations,
    /// HTTP/2: 4 connections with nothing but settings.
    Settings,
    /// HTTP/2: 4 connections with nothing but pings.
    Pings,
    /// HTTP/2: 4 connections with nothing but empty parts of a body.
    EmptyFrames,
    /// HTTP/2: 500 connections that ask for lists and leave no room for the answers.
    StuckAnswers,
}

impl Attack {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Idle => "idle",
            Self::SlowHeads => "slow-heads",
            Self::SlowBodies => "slow-bodies",
            Self::SlowReaders => "slow-readers",
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
            Self::StuckAnswers => "stuck-answers",
        }
    }

    /// Whether it needs TLS, by which alone HTTP/2 is spoken.
    pub(crate) fn needs_tls(self) -> bool {
        use Attack::{Continuations, EmptyFrames, Handshakes, Pings, Resets, Settings, Streams, StuckAnswers};
        matches!(self, Handshakes | Resets | Streams | Continuations | Settings | Pings | EmptyFrames | StuckAnswers)
    }
}

/// What all attackers of a process share.
#[derive(Clone)]
pub(crate) struct Attackers {
    target: Arc<Target>,
    until: Instant,
    observed: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Attacks, and prints what came of it; `false` when something was answered as it must not be.
pub(crate) async fn run(options: &AttackOptions) -> Result<bool> {
    let until = Instant::now() + Duration::from_millis(options.millis);
    let all = Attackers { target: Arc::new(options.target.clone()), until, observed: Arc::default() };
    let result = match options.attack {
        Attack::Silent => crowds::silent(&all).await,
        Attack::Idle => crowds::idle(&all).await,
        Attack::SlowHeads => crowds::slow_heads(&all).await,
        Attack::SlowBodies => crowds::slow_bodies(&all).await,
        Attack::SlowReaders => crowds::slow_readers(&all).await,
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
        Attack::StuckAnswers => http2::stuck_answers(&all).await,
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

    /// Notes what the server did.
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

    /// `count` attackers at the same time, each of which begins anew until the time is over.
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
                    // An attack that is cut off is a good sign; not one that ends at once.
                    let ended = tokio::time::timeout_at(attackers.until, attack(attackers.clone(), number)).await;
                    if let Ok(Err(error)) = ended {
                        attackers.record(short(&*error));
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            });
            // Not all in one moment, which the queue of the listener would not hold.
            if number % 100 == 99 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        all.join_all().await;
        Ok(())
    }

    /// Reads until the server closes; notes the statuses of the answers over HTTP/1.1.
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

    /// Notes the statuses in a piece of what came. One that is cut in two is missed.
    fn record_statuses(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for (at, found) in text.match_indices("HTTP/1.1 ") {
            let rest = &text[at + found.len()..];
            self.record(rest.get(..3).unwrap_or("?"));
        }
    }
}

/// The sentence of an error without what differs each time.
fn short(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref::<std::io::Error>() {
        Some(error) => format!("{:?}", error.kind()),
        None => error.to_string(),
    }
}
