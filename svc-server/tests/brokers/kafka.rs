//! Kafka, as the mock cluster of librdkafka speaks it: the program of `tests/kafka-cluster`. No real broker is tried.

use std::path::PathBuf;
use std::process::Stdio;

use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::support::{self, Broker, Received, installed};

/// What the program of the cluster creates.
const TOPIC: &str = "events";
const PARTITIONS: i32 = 4;

struct Kafka {
    program: PathBuf,
    cluster: Option<Cluster>,
}

/// The running program.
struct Cluster {
    _child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    broker: String,
}

impl Cluster {
    async fn command(&mut self, command: &str) {
        self.stdin.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        assert_eq!(self.lines.next_line().await.unwrap().as_deref(), Some("ok"));
    }
}

impl Kafka {
    fn new() -> Option<Self> {
        Some(Self { program: installed("svc-kafka-cluster")?, cluster: None })
    }

    fn broker(&self) -> &str {
        &self.cluster.as_ref().unwrap().broker
    }

    async fn partitions(&self) -> Vec<PartitionClient> {
        let client: Client = ClientBuilder::new(vec![self.broker().to_owned()]).build().await.unwrap();
        let mut partitions = Vec::new();
        for partition in 0..PARTITIONS {
            let opened = client.partition_client(TOPIC, partition, UnknownTopicHandling::Retry);
            partitions.push(opened.await.unwrap());
        }
        partitions
    }
}

impl Broker for Kafka {
    async fn start(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            return cluster.command("up").await;
        }
        let mut program = Command::new(&self.program);
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut lines = BufReader::new(stdout).lines();
        let brokers = lines.next_line().await.unwrap().unwrap();
        let broker = brokers.split(',').next().unwrap().to_owned();
        self.cluster = Some(Cluster { _child: child, stdin, lines, broker });
    }

    /// Makes all brokers unreachable. They keep what they have.
    async fn kill(&mut self) {
        self.cluster.as_mut().unwrap().command("down").await;
    }

    fn stream_url(&self) -> String {
        format!("kafka://{}/{TOPIC}", self.broker())
    }

    async fn count(&self) -> u64 {
        let mut count = 0;
        for partition in self.partitions().await {
            count += u64::try_from(partition.get_offset(OffsetAt::Latest).await.unwrap()).unwrap();
        }
        count
    }

    async fn received(&self) -> Vec<Received> {
        let mut received = Vec::new();
        let mut used = 0;
        for partition in self.partitions().await {
            let mut offset = 0;
            let end = partition.get_offset(OffsetAt::Latest).await.unwrap();
            used += usize::from(end > 0);
            while offset < end {
                let from = offset;
                let (records, _) = partition.fetch_records(offset, 1..1_000_000, 1_000).await.unwrap();
                for found in records.into_iter().filter(|found| found.offset >= from) {
                    offset = found.offset + 1;
                    let header = |name: &str| String::from_utf8(found.record.headers[name].clone()).unwrap();
                    let account = header("x-svc-account");
                    assert_eq!(found.record.key.as_deref(), Some(account.as_bytes()));
                    received.push(Received {
                        account,
                        event_id: header("x-svc-event-id"),
                        kind: header("x-svc-event"),
                    });
                }
            }
        }
        assert!(used > 1, "five accounts are in several partitions");
        received
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_brokers_of_kafka_are_down_or_the_server_is_killed() {
    let Some(mut kafka) = Kafka::new() else { return };
    support::nothing_is_lost_when_anything_is_killed(&mut kafka).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn how_fast_a_backlog_is_sent_to_kafka() {
    let Some(mut kafka) = Kafka::new() else { return };
    support::measure_a_backlog(&mut kafka).await;
}
