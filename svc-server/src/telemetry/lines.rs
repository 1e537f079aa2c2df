//! Writes the lines of the log: one for each event, and no warning or error again and again.
//!
//! The texts of errors come from databases, operating systems and libraries, and some have line breaks. A line that begins in the
//! middle of a sentence belongs to no event, for people and for programs that read the log, so line breaks are written as `\n`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use svc_core::sync::lock;

/// How often a warning or an error is written in a minute. The next line of the log says how many there were more.
const LIMIT: u64 = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// How often the minutes of all messages are looked through.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often the sums of messages are written, if no other line is.
const SUM_INTERVAL: Duration = Duration::from_secs(10);
/// How many messages are known.
const CAPACITY: usize = 1024;

/// Writes to stderr. Its clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Repeats>>);

impl Lines {
    /// Writes the sums of minutes that have ended, also while no other line comes, as long as the process runs.
    pub(super) fn write_sums(&self) {
        let lines = self.clone();
        let write = move || {
            loop {
                std::thread::sleep(SUM_INTERVAL);
                lines.write_out(|repeats| repeats.ended(Instant::now()));
            }
        };
        // Without the thread a sum comes with the next line.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(write);
    }

    /// Writes all sums, as the process ends.
    pub(super) fn write_rest(&self) {
        self.write_out(Repeats::rest);
    }

    /// Writes to stderr. There is nobody to tell if that fails.
    fn write_out(&self, lines: impl FnOnce(&mut Repeats) -> String) {
        let lines = lines(&mut lock(&self.0));
        let _ = io::stderr().write_all(lines.as_bytes());
    }
}

impl Write for Lines {
    /// Writes an event, which the subscriber hands over as a whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let lines = lock(&self.0).lines(&String::from_utf8_lossy(event), Instant::now());
        io::stderr().write_all(lines.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The warnings and errors of the last minute.
#[derive(Default)]
struct Repeats {
    /// By what they say.
    messages: HashMap<u64, Repeat>,
    checked_at: Option<Instant>,
}

struct Repeat {
    since: Instant,
    count: u64,
    /// The last one that was not written.
    unwritten: String,
}

impl Repeats {
    /// Returns the lines to write for an event.
    fn lines(&mut self, event: &str, now: Instant) -> String {
        let line = in_one_line(event);
        let mut lines = self.ended(now);
        let Some(message) = message_of_problem(&line) else {
            return lines + &line + "\n";
        };
        let mut hasher = DefaultHasher::new();
        message.hash(&mut hasher);
        if self.messages.len() >= CAPACITY {
            self.messages.retain(|_, repeat| repeat.count > LIMIT);
        }
        let new = Repeat { since: now, count: 0, unwritten: String::new() };
        let repeat = self.messages.entry(hasher.finish()).or_insert(new);
        repeat.count += 1;
        if repeat.count <= LIMIT {
            lines += &line;
            lines.push('\n');
        } else {
            repeat.unwritten = line;
        }
        lines
    }

    /// Returns a line for each message that was not written as often as it came, in a minute that has ended.
    fn ended(&mut self, now: Instant) -> String {
        let mut lines = String::new();
        if self.checked_at.is_some_and(|at| now.duration_since(at) < CHECK_INTERVAL) {
            return lines;
        }
        self.checked_at = Some(now);
        self.messages.retain(|_, repeat| {
            let is_current = now.duration_since(repeat.since) < MINUTE;
            if !is_current {
                lines += &repeat.sum();
            }
            is_current
        });
        lines
    }

    /// Returns such a line for each message, also of minutes that have not ended.
    fn rest(&mut self) -> String {
        self.messages.drain().map(|(_, repeat)| repeat.sum()).collect()
    }
}

impl Repeat {
    /// Returns the line that says how often a message came that was not written, if there is one.
    fn sum(&self) -> String {
        if self.count > LIMIT { counted(&self.unwritten, self.count - LIMIT) + "\n" } else { String::new() }
    }
}

/// Returns the text of an event without its last line break, and with others escaped.
fn in_one_line(event: &str) -> String {
    let event = event.trim_end_matches(['\n', '\r']);
    event.replace("\r\n", "\\n").replace(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], "\\n")
}

/// Returns what a line says after its time, if it is a warning or an error.
fn message_of_problem(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(if line.starts_with('{') { ',' } else { ' ' })?;
    let rest = rest.trim_start();
    let levels = ["WARN ", "ERROR ", "\"level\":\"WARN\"", "\"level\":\"ERROR\""];
    levels.iter().any(|level| rest.starts_with(level)).then_some(rest)
}

/// Adds how often a message came that was not written.
fn counted(line: &str, count: u64) -> String {
    match line.strip_suffix('}') {
        Some(object) if line.starts_with('{') => format!("{object},\"repeated\":{count}}}"),
        _ => format!("{line} repeated={count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        let event = "T ERROR svc: cannot read error=\"connection failed\nDETAIL:  gone\r\nHINT: \u{2028}wait\"\n";
        let line = "T ERROR svc: cannot read error=\"connection failed\\nDETAIL:  gone\\nHINT: \\nwait\"\n";
        assert_eq!(repeats.lines(event, now), line);
        assert_eq!(repeats.lines("T  INFO svc: a\nb\n\n", now), "T  INFO svc: a\\nb\n");
    }

    #[test]
    fn a_problem_that_comes_again_and_again_is_counted() {
        for (problem, other, summary) in [
            (
                "2026-11-28T14:00:0#.5Z  WARN svc: no database error=gone\n",
                "2026-11-28T14:01:01Z  INFO svc: served\n",
                "2026-11-28T14:00:09.5Z  WARN svc: no database error=gone repeated=878\n",
            ),
            (
                "{\"timestamp\":\"2026-11-28T14:00:0#.5Z\",\"level\":\"ERROR\",\"message\":\"gone\"}\n",
                "{\"timestamp\":\"2026-11-28T14:01:01Z\",\"level\":\"INFO\",\"message\":\"served\"}\n",
                "{\"timestamp\":\"2026-11-28T14:00:09.5Z\",\"level\":\"ERROR\",\"message\":\"gone\",\"repeated\":878}\n",
            ),
        ] {
            let (mut repeats, start) = (Repeats::default(), Instant::now());
            let at = |second: u64| start + Duration::from_secs(second);
            let written: String =
                (0..883_u64).map(|n| repeats.lines(&problem.replace('#', &(n / 90).to_string()), at(n / 90))).collect();
            assert_eq!(written.lines().count(), 5, "{written}");
            assert_eq!(repeats.lines(&problem.replace("gone", "late"), at(30)).lines().count(), 1, "another problem");
            assert_eq!(repeats.lines(other, at(61)), format!("{summary}{other}"));
            assert_eq!(repeats.lines(problem, at(62)), problem, "a new minute");
        }
    }

    #[test]
    fn a_sum_needs_no_further_line() {
        let (mut repeats, start) = (Repeats::default(), Instant::now());
        for _ in 0..9 {
            repeats.lines("T ERROR svc: gone\n", start);
        }
        assert_eq!(repeats.ended(start + Duration::from_secs(59)), "");
        assert_eq!(repeats.ended(start + Duration::from_secs(60)), "T ERROR svc: gone repeated=4\n");
        for _ in 0..8 {
            repeats.lines("T ERROR svc: away\n", start);
        }
        repeats.lines("T ERROR svc: once\n", start);
        assert_eq!((repeats.rest(), repeats.rest()), ("T ERROR svc: away repeated=3\n".to_owned(), String::new()));
    }

    #[test]
    fn what_is_no_problem_is_written_as_often_as_it_comes() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        for _ in 0..100 {
            let event = "T  INFO svc_server::access: request\n";
            assert_eq!(repeats.lines(event, now), event);
        }
        assert!(repeats.messages.is_empty());
    }

    #[test]
    fn few_messages_are_known_at_a_time() {
        let (mut repeats, now) = (Repeats::default(), Instant::now());
        for n in 0..10 * CAPACITY {
            repeats.lines(&format!("T ERROR svc: {n}\n"), now);
        }
        assert!(repeats.messages.len() <= CAPACITY);
    }
}
