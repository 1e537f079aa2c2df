//! What the log says of failed attempts.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::engine::Fixture;
use super::receivers::{FAILS, Receiver};

/// Collects the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8(log.clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs on one thread, whose log is collected.
#[tokio::test]
async fn failed_attempts_are_logged_without_the_path_of_the_url() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    // With a single subscriber, an event that another thread records first is never collected (tokio-rs/tracing#3611).
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _collecting = tracing::subscriber::set_default(subscriber);

    let receiver = Receiver::with_responses(&[FAILS]).await;
    let fixture = Fixture::start(&[1]).await;
    let hook = fixture.subscribe(&receiver.url("/hooks/t0ken?key=t0ken")).await;
    fixture.contact("ada@example.com").await;
    let deliveries = fixture.until(|deliveries| deliveries[0].failures == 2).await;
    let (tenant, host) = (fixture.tenant.to_string(), receiver.address.to_string());
    fixture.stop().await;

    let lines: Vec<Value> = log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value| {
        let about = [&line["tenant"], &line["subscription"], &line["host"], &line["delivery"]];
        let about = about.map(|field| field.as_str().unwrap_or_default().to_owned());
        assert_eq!(about, [&tenant, &hook.id.to_string(), &host, &deliveries[0].id.to_string()].map(String::from));
        assert_eq!((&line["status"], &line["error"]), (&500.into(), &"status: 500 Internal Server Error".into()));
        (line["level"].clone(), line["attempt"].clone(), line["next_attempt_at"].is_string())
    };
    let lines: Vec<_> = lines.iter().map(of).collect();
    let expected = [("INFO", 1, true), ("WARN", 2, false), ("INFO", 2, false)];
    assert_eq!(lines, expected.map(|(level, attempt, retried)| (level.into(), attempt.into(), retried)));
    for hidden in ["t0ken", "hooks", "ada@example.com", "oops", hook.secret.reveal()] {
        assert!(!log.text().contains(hidden), "{hidden}: {}", log.text());
    }
}
