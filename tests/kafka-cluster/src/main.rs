//! The mock cluster of librdkafka: brokers in this process that speak Kafka's protocol and keep records in memory.
//!
//! It prints its bootstrap servers, then obeys lines on stdin: `down` makes the brokers unreachable, `up` reachable again.
//! After each it prints `ok`. It ends at the end of stdin.

use std::error::Error;
use std::io::{BufRead as _, Write as _, stdin, stdout};

use rdkafka::mocking::MockCluster;

/// The ids of the brokers.
const BROKERS: std::ops::RangeInclusive<i32> = 1..=3;
/// The topic, with several partitions that are stored by several brokers.
const TOPIC: (&str, i32, i32) = ("events", 4, 3);

fn main() -> Result<(), Box<dyn Error>> {
    let cluster = MockCluster::new(*BROKERS.end())?;
    let (topic, partitions, replicas) = TOPIC;
    cluster.create_topic(topic, partitions, replicas)?;
    say(&cluster.bootstrap_servers())?;
    for line in stdin().lock().lines() {
        let command = line?;
        for broker in BROKERS {
            match command.as_str() {
                "down" => cluster.broker_down(broker)?,
                "up" => cluster.broker_up(broker)?,
                other => return Err(format!("{other} is not a command: write down or up").into()),
            }
        }
        say("ok")?;
    }
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
