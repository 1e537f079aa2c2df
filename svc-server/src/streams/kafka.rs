//! Kafka, and others that speak its protocol: `kafka://USER:PASSWORD@HOST:PORT/TOPIC`, and `kafka+ssl://` over TLS. The host is
//! any broker of the cluster, which names the others.
//!
//! The key of a record is the account, and the partition follows from it as Kafka's own clients choose it. So the events of an
//! account are in one partition, in their order. The next events of an account are one batch, which a broker stores as a
//! whole once all replicas in sync have it. The header `x-svc-event-id` is the id of the event.
//!
//! The producer is not idempotent, as rskafka has none. It need not be: the batches of an account follow each other, each once the
//! one before it is confirmed, and what is published again has the same ids.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use svc_core::values::{Secret, StreamUrl, TenantId};
use svc_core::webhooks::streams::{Message, PublishError};
use tokio_rustls::rustls::ClientConfig;

use super::StreamError;
use super::reconnecting::{Connection, Connector};
use super::url::Parts;

const DEFAULT_PORT: u16 = 9092;
/// The highest number of bytes of the bodies of a batch, unless a single one is larger. Kafka takes batches of 1 MB by default.
const MAX_BATCH: usize = 512 * 1024;
/// For how long the client tries again by itself.
const RETRIES: Duration = Duration::from_secs(3);

/// The address of a broker, and the topic.
pub(super) struct Kafka {
    broker: String,
    credentials: Option<(Secret, Secret)>,
    mechanism: Mechanism,
    tls: Option<Arc<ClientConfig>>,
    topic: String,
}

/// How the client signs in.
#[derive(Clone, Copy)]
enum Mechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

impl Kafka {
    pub(super) fn parse(url: &StreamUrl) -> Result<Self, StreamError> {
        let parts = Parts::of(url, &["ca", "mechanism"])?;
        let [topic] = &parts.path[..] else {
            let error = "must have a path with the topic, as in kafka://kafka.internal:9092/events";
            return Err(StreamError::Url(error.to_owned()));
        };
        let mechanism = match parts.parameter("mechanism") {
            None | Some("plain") => Mechanism::Plain,
            Some("scram-sha-256") => Mechanism::ScramSha256,
            Some("scram-sha-512") => Mechanism::ScramSha512,
            Some(other) => {
                let error = format!("mechanism must be plain, scram-sha-256 or scram-sha-512, and is {other}");
                return Err(StreamError::Url(error));
            }
        };
        let topic = topic.clone();
        let tls = url.is_tls().then(|| parts.tls()).transpose()?.map(Arc::new);
        let broker = format!("{}:{}", parts.host, parts.port.unwrap_or(DEFAULT_PORT));
        Ok(Self { broker, credentials: parts.user.zip(parts.password), mechanism, tls, topic })
    }
}

/// A connection with a client for each partition of the topic.
pub(super) struct KafkaConnection {
    partitions: Vec<PartitionClient>,
}

impl Connector for Kafka {
    type Connection = KafkaConnection;

    async fn connect(&self) -> Result<KafkaConnection, PublishError> {
        let backoff = BackoffConfig { deadline: Some(RETRIES), ..BackoffConfig::default() };
        let mut builder = ClientBuilder::new(vec![self.broker.clone()]).client_id("svc").backoff_config(backoff);
        if let Some((user, password)) = &self.credentials {
            let credentials = Credentials::new(user.reveal().to_owned(), password.reveal().to_owned());
            builder = builder.sasl_config(match self.mechanism {
                Mechanism::Plain => SaslConfig::Plain(credentials),
                Mechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
                Mechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
            });
        }
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(Arc::clone(tls));
        }
        let client = builder.build().await.map_err(unavailable)?;
        let topics = client.list_topics().await.map_err(unavailable)?;
        let topic = topics.into_iter().find(|topic| topic.name == self.topic).ok_or_else(|| {
            PublishError::Unavailable(format!(
                "there is no topic {}; create it, with as many partitions as it needs",
                self.topic
            ))
        })?;
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in topic.partitions {
            let opened = client.partition_client(self.topic.clone(), partition, UnknownTopicHandling::Error);
            partitions.push(opened.await.map_err(unavailable)?);
        }
        if partitions.is_empty() {
            return Err(PublishError::Unavailable(format!("the topic {} has no partitions", self.topic)));
        }
        Ok(KafkaConnection { partitions })
    }
}

impl Connection for KafkaConnection {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let Some(first) = messages.first() else { return Ok(0) };
        let (mut records, mut size) = (Vec::new(), 0);
        for message in messages {
            let body = message.body();
            size += body.len();
            if !records.is_empty() && size > MAX_BATCH {
                break;
            }
            records.push(record(message, body));
        }
        let partition = &self.partitions[partition(first.event.tenant_id, self.partitions.len())];
        produce_first(records, |records| partition.produce(records, Compression::NoCompression)).await
    }
}

/// Produces the first of some records as one batch, and returns how many there were: all of them, or the first half of those that
/// are too many for the broker, down to a single one. A broker limits the size of a batch, and a client learns of it in no other
/// way.
async fn produce_first<F>(
    mut records: Vec<Record>,
    produce: impl Fn(Vec<Record>) -> F + Send,
) -> Result<usize, PublishError>
where
    F: Future<Output = Result<Vec<i64>, Error>> + Send,
{
    loop {
        let count = records.len();
        match produce(records.clone()).await {
            Ok(_) => return Ok(count),
            Err(error) if is_too_large(&error) && count > 1 => records.truncate(count / 2),
            Err(error) if is_too_large(&error) => {
                let limit = "raise max.message.bytes of the topic";
                return Err(PublishError::Refused(format!(
                    "the record is larger than the broker takes; {limit}: {error}"
                )));
            }
            Err(error) => return Err(unavailable(error)),
        }
    }
}

fn record(message: &Message, body: Vec<u8>) -> Record {
    let headers: BTreeMap<String, Vec<u8>> =
        message.headers().into_iter().map(|(name, value)| (name.to_owned(), value.into_bytes())).collect();
    let key = message.event.tenant_id.to_string().into_bytes();
    let timestamp = DateTime::from_timestamp_micros(message.event.created_at.as_micros()).unwrap_or_default();
    Record { key: Some(key), value: Some(body), headers, timestamp }
}

/// Returns the partition of the records of an account, as Kafka's own clients choose it by the key.
fn partition(account: TenantId, partitions: usize) -> usize {
    let hash = murmur2(account.to_string().as_bytes()) & 0x7fff_ffff;
    usize::try_from(hash).unwrap_or_default() % partitions
}

/// Returns the 32-bit MurmurHash2 of some bytes with the seed of Kafka (`org.apache.kafka.common.utils.Utils.murmur2`).
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mix = |word: u32| {
        let word = word.wrapping_mul(M);
        (word ^ (word >> 24)).wrapping_mul(M)
    };
    let mut hash = 0x9747_b28c ^ u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(M) ^ mix(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

fn is_too_large(error: &Error) -> bool {
    matches!(
        error,
        Error::ServerError { protocol_error: ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge, .. }
    )
}

fn unavailable(error: Error) -> PublishError {
    PublishError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use rskafka::client::error::RequestContext;

    use super::*;

    /// A record with a body of this many bytes.
    fn of_size(size: usize) -> Record {
        Record { key: None, value: Some(vec![0; size]), headers: BTreeMap::new(), timestamp: DateTime::default() }
    }

    fn server_error(protocol_error: ProtocolError) -> Error {
        let request = RequestContext::Topic("events".to_owned());
        Error::ServerError { protocol_error, error_message: None, request, response: None, is_virtual: false }
    }

    /// Sends records of these sizes to a broker that takes batches of `limit` bytes, each time what is left. Returns the numbers
    /// of records of the batches that it was sent, and the error that ended it.
    fn sent(sizes: &[usize], limit: usize, refusal: ProtocolError) -> (Vec<usize>, Option<PublishError>) {
        let batches = Mutex::new(Vec::new());
        let produce = async |batch: Vec<Record>| {
            batches.lock().unwrap().push(batch.len());
            let size: usize = batch.iter().filter_map(|record| record.value.as_ref()).map(Vec::len).sum();
            if size > limit { Err(server_error(refusal)) } else { Ok(vec![0; batch.len()]) }
        };
        let (mut at, mut error) = (0, None);
        while at < sizes.len() && error.is_none() {
            let records = sizes[at..].iter().map(|size| of_size(*size)).collect();
            match produce_first(records, &produce).now_or_never().unwrap() {
                Ok(count) => at += count,
                Err(refused) => error = Some(refused),
            }
        }
        (batches.into_inner().unwrap(), error)
    }

    #[test]
    fn a_batch_that_is_too_large_is_sent_in_parts() {
        for refusal in [ProtocolError::MessageTooLarge, ProtocolError::RecordListTooLarge] {
            assert_eq!(sent(&[10; 8], 80, refusal), (vec![8], None));
            assert_eq!(sent(&[10; 8], 45, refusal), (vec![8, 4, 4], None));
            assert_eq!(sent(&[10; 5], 10, refusal), (vec![5, 2, 1, 4, 2, 1, 3, 1, 2, 1, 1], None));
            // The first that does not fit alone is refused, and what comes before it was sent.
            let (batches, error) = sent(&[10, 50, 10], 40, refusal);
            assert_eq!(batches, [3, 1, 2, 1]);
            assert!(matches!(error, Some(PublishError::Refused(_))), "{error:?}");
        }
        let (batches, error) = sent(&[10; 8], 45, ProtocolError::NotLeaderOrFollower);
        assert_eq!(batches, [8], "another error says nothing of the size");
        assert!(matches!(error, Some(PublishError::Unavailable(_))), "{error:?}");
    }

    /// The values are those of Kafka's own test of its hash (`UtilsTest.testMurmur2`).
    #[test]
    fn the_hash_of_a_key_is_that_of_kafka() {
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ] {
            assert_eq!(murmur2(text.as_bytes()).cast_signed(), hash, "{text}");
        }
    }
}
