//! The line that is printed for an attack, and its violations.

use std::time::Duration;

use crate::attacks::Attack;
use crate::honest::ClientResults;
use crate::server::ServerOutcome;

/// The most memory that the server may use, in bytes.
const MEMORY: u64 = 256 * 1024 * 1024;
/// How many times longer than alone honest requests may take.
const FACTOR: u32 = 2;
/// Latencies up to this one are always accepted.
const FLOOR: Duration = Duration::from_millis(20);

pub(crate) struct Report {
    pub(crate) attack: Attack,
    pub(crate) alone: ClientResults,
    pub(crate) together: ClientResults,
    /// What the attackers observed.
    pub(crate) observed: String,
    pub(crate) server: ServerOutcome,
}

pub(crate) fn heading() -> String {
    let mut line = row(
        "attack",
        ["p50 alone", "p99 alone", "p50 attack", "p99 attack", "p99 ratio", "errors", "memory", "panics"]
            .map(str::to_owned),
    );
    line.push_str("observed by the attackers");
    line
}

fn row(name: &str, columns: [String; 8]) -> String {
    let columns: String = columns.iter().map(|column| format!("{column:>11}")).collect();
    format!("{name:<18}{columns}  ")
}

impl Report {
    pub(crate) fn line(&self) -> String {
        let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
        let (alone, together) = (&self.alone, &self.together);
        let ratio = together.percentile(99).as_secs_f64() / alone.percentile(99).as_secs_f64().max(1e-9);
        let memory = self.server.memory.map_or("?".to_owned(), |bytes| format!("{} MB", bytes / (1024 * 1024)));
        let columns = [
            millis(alone.percentile(50)),
            millis(alone.percentile(99)),
            millis(together.percentile(50)),
            millis(together.percentile(99)),
            format!("{ratio:.1}"),
            errors(together).to_string(),
            memory,
            self.server.panics.len().to_string(),
        ];
        row(self.attack.name(), columns) + &self.observed
    }

    /// Returns what did not hold.
    pub(crate) fn violations(&self, with_latency: bool) -> Vec<String> {
        let mut violations = Vec::new();
        for (when, results) in [("alone", &self.alone), ("together", &self.together)] {
            for (error, count) in &results.errors {
                violations
                    .push(format!("{count} of {} honest requests, {when}: {error}", errors(results) + results.count()));
            }
        }
        let (before, after) = (self.alone.percentile(99), self.together.percentile(99));
        if with_latency && after > FLOOR && after > before * FACTOR {
            violations.push(format!("p99 of honest requests rose from {before:?} to {after:?}"));
        }
        match self.server.memory {
            Some(bytes) if bytes > MEMORY => violations.push(format!("the server used {bytes} bytes of memory")),
            _ => {}
        }
        if !self.server.survived {
            violations.push("the server ended by itself".to_owned());
        }
        violations.extend(self.server.panics.iter().cloned());
        violations.extend(self.server.end.clone());
        violations
    }
}

fn errors(results: &ClientResults) -> usize {
    results.errors.values().sum()
}
