//! Runs the steps of a case with a client.

use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{Stream, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use svc_client::prelude::*;
use svc_client::records::{Creatable, Deletable, Readable, Syncable, Updatable};
use svc_client::{Collection, List, TransportErrorKind};
use svc_core::input::Input;
use svc_webhook_verify::{Event as Delivered, Verifier};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::cases::at_once;
use crate::hostile::{HostileServer, read_request};

/// What all steps of a case share.
pub(crate) struct Context<'a> {
    pub(crate) client: Client,
    /// The server that misbehaves, if it is one.
    pub(crate) server: Option<Arc<HostileServer>>,
    /// Told when a wait begins, if waits take their time.
    pub(crate) wait_began: Option<Arc<Notify>>,
    pub(crate) name: &'a str,
    pub(crate) unique: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    call: String,
    #[serde(default)]
    collection: String,
    #[serde(default)]
    id: String,
    record: Option<usize>,
    #[serde(default)]
    input: Map<String, Value>,
    idempotency_key: Option<String>,
    #[serde(default)]
    filter: Map<String, Value>,
    limit: Option<u32>,
    cursor: Option<String>,
    updated_since: Option<Timestamp>,
    position: Option<SyncPosition>,
    take: Option<usize>,
    parallel: Option<usize>,
    events: Option<Value>,
    trigger: Option<Map<String, Value>>,
    cancel_after_requests: Option<usize>,
    within_ms: Option<u64>,
    repeat_until_error: Option<usize>,
    #[serde(rename = "result")]
    _result: Option<Value>,
    error: Option<ExpectedError>,
    partial: Option<Value>,
}

/// The fields that an error can have in the table.
#[derive(Deserialize)]
struct ExpectedError {
    kind: Value,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

const ERROR_FIELDS: [&str; 11] = [
    "status",
    "code",
    "message",
    "field",
    "errors",
    "existing_id",
    "retry_after_ms",
    "request_id",
    "attempts",
    "transport",
    "start",
];
const AMOUNTS: [&str; 3] = ["total", "estimated_total", "actual_total"];

/// Fails unless `actual` has everything that is expected: objects may have more members.
pub(crate) fn matches(actual: &Value, expected: &Value, place: &str) {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            for (name, value) in expected {
                let place = format!("{place}.{name}");
                matches(actual.get(name).unwrap_or_else(|| panic!("{place} is missing in {actual:?}")), value, &place);
            }
        }
        (Value::Array(actual), Value::Array(expected)) => {
            assert_eq!(actual.len(), expected.len(), "{place}: {actual:?}");
            for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
                matches(actual, expected, &format!("{place}.{index}"));
            }
        }
        _ => assert_eq!(actual, expected, "{place}"),
    }
}

/// Replaces `{unique}`, and `$1.id` by what step 1 returned.
fn resolved(value: &Value, results: &[Value], unique: &str) -> Value {
    match value {
        Value::String(text) => {
            match text.strip_prefix('$').filter(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit())) {
                Some(path) => {
                    let (step, path) = path.split_once('.').unwrap();
                    let path = path.replace('.', "/");
                    let found = results[step.parse::<usize>().unwrap()].pointer(&format!("/{path}"));
                    found.unwrap_or_else(|| panic!("there is no {text}")).clone()
                }
                None => Value::String(text.replace("{unique}", unique)),
            }
        }
        Value::Array(items) => items.iter().map(|item| resolved(item, results, unique)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), resolved(value, results, unique))).collect()
        }
        other => other.clone(),
    }
}

/// Returns when a call is to be cancelled: after so many requests, and in a wait that takes its time.
async fn cancelled(server: &HostileServer, count: usize, wait_began: Option<&Notify>) {
    server.received(count).await;
    if let Some(began) = wait_began {
        began.notified().await;
    }
}

/// Returns a record as JSON, with the digits of its amounts as they were read.
fn record_json<T: Serialize>(record: &T) -> Value {
    let text = serde_json::to_string(record).unwrap();
    let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(&text).unwrap();
    let value = |name: &str, raw: &RawValue| match raw.get() {
        digits if AMOUNTS.contains(&name) && digits != "null" => Value::String(digits.to_owned()),
        other => serde_json::from_str(other).unwrap(),
    };
    members.iter().map(|(name, raw)| (name.clone(), value(name, raw))).collect()
}

fn versioned_json<T: Serialize>(versioned: &Versioned<T>) -> Value {
    let mut json = record_json(&versioned.record);
    json["etag"] = versioned.etag.as_str().into();
    json
}

fn invalid(reason: impl std::fmt::Display) -> Error {
    Error::InvalidArgument(reason.to_string())
}

/// Reads an input, whose amounts are texts.
fn input<I: Input>(members: &Map<String, Value>) -> Result<I, Error> {
    let mut texts = Vec::new();
    for (name, value) in members {
        let text = match value {
            Value::String(amount) if AMOUNTS.contains(&name.as_str()) => {
                amount.parse::<Decimal>().map_err(|issue| invalid(format!("{issue:?}")))?.to_string()
            }
            other => other.to_string(),
        };
        texts.push(format!("{}:{text}", Value::from(name.as_str())));
    }
    I::from_body(format!("{{{}}}", texts.join(",")).as_bytes()).map_err(|error| invalid(format!("{error:?}")))
}

fn id<T: FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| invalid(format!("{text:?} is no id")))
}

/// Collects the items of a stream where the caller finds them after an error as well.
async fn take<T>(
    items: impl Stream<Item = Result<T, Error>>,
    most: Option<usize>,
    partial: &Mutex<Vec<Value>>,
    json: impl Fn(&T) -> Value,
) -> Result<Value, Error> {
    let mut items = std::pin::pin!(items);
    while most.is_none_or(|most| partial.lock().unwrap().len() < most) {
        let Some(item) = items.try_next().await? else { break };
        partial.lock().unwrap().push(json(&item));
    }
    Ok(Value::Array(partial.lock().unwrap().clone()))
}

fn page_json<R: Serialize>(page: &SyncPage<R>) -> Value {
    json!({ "records": page.records.iter().map(record_json).collect::<Vec<_>>(), "position": page.position })
}

/// A step with what it refers to.
struct Call<'a> {
    step: &'a Step,
    partial: &'a Mutex<Vec<Value>>,
    /// The id of the record, and its version if the step names a record.
    target: (String, Option<ETag>),
}

impl Call<'_> {
    async fn read<R>(&self, all: Collection<R>, since: fn(List<R>, Timestamp) -> List<R>) -> Result<Value, Error>
    where
        R: Readable + Serialize,
        R::Full: Serialize,
        R::Id: FromStr,
        R::Filters: Input,
    {
        let Self { step, target: (text, version), .. } = self;
        match step.call.as_str() {
            "get" => return all.get(id(text)?).await.map(|found| versioned_json(&found)),
            "get_if_changed" => {
                let found = all.get_if_changed(id(text)?, version.as_ref().unwrap()).await?;
                return Ok(found.as_ref().map_or(Value::Null, versioned_json));
            }
            _ => {}
        }
        let mut list = all.list().filter(input(&step.filter)?);
        if let Some(limit) = step.limit {
            list = list.limit(limit);
        }
        if let Some(cursor) = &step.cursor {
            list = list.cursor(id(cursor)?);
        }
        if let Some(time) = step.updated_since {
            list = since(list, time);
        }
        if step.call == "all" {
            return take(list.all(), step.take, self.partial, record_json).await;
        }
        let page = list.page().await?;
        let data: Vec<Value> = page.data.iter().map(record_json).collect();
        Ok(json!({ "data": data, "next_cursor": page.next_cursor }))
    }

    async fn create<R: Creatable>(&self, all: Collection<R>) -> Result<Value, Error>
    where
        R::Input: Input,
        R::Created: Serialize,
    {
        let new = input(&self.step.input)?;
        let created = match &self.step.idempotency_key {
            Some(key) => all.create_with_key(&new, key).await?,
            None => all.create(&new).await?,
        };
        Ok(versioned_json(&created))
    }

    async fn update<R: Updatable + Serialize>(&self, all: Collection<R>) -> Result<Value, Error>
    where
        R::Change: Input,
        R::Id: FromStr,
    {
        let (change, id) = (input(&self.step.input)?, id(&self.target.0)?);
        let changed = match &self.target.1 {
            Some(version) => all.update_if(version, id, &change).await?,
            None => all.update(id, &change).await?,
        };
        Ok(versioned_json(&changed))
    }

    async fn delete<R: Deletable>(&self, all: Collection<R>) -> Result<Value, Error>
    where
        R::Id: FromStr,
    {
        let id = id(&self.target.0)?;
        match &self.target.1 {
            Some(version) => all.delete_if(version, id).await?,
            None => all.delete(id).await?,
        }
        Ok(Value::Null)
    }

    async fn sync<R: Syncable + Serialize>(&self, all: Collection<R>) -> Result<Value, Error> {
        let position = self.step.position.unwrap_or_default();
        take(all.sync_since(position), self.step.take, self.partial, page_json).await
    }

    async fn make(&self, client: &Client) -> Result<Value, Error> {
        let step = self.step;
        match (step.call.as_str(), step.collection.as_str()) {
            ("ping", _) => {
                let ping = client.ping().await?;
                Ok(json!({ "ok": ping.ok, "tenantId": ping.tenant_id, "timestamp": ping.timestamp }))
            }
            ("get" | "get_if_changed" | "page" | "all", collection) => match collection {
                "contacts" => self.read(client.contacts(), List::updated_since).await,
                "invoices" => self.read(client.invoices(), List::updated_since).await,
                "bookings" => self.read(client.bookings(), List::updated_since).await,
                "quotes" => self.read(client.quotes(), List::updated_since).await,
                "jobs" => self.read(client.jobs(), List::updated_since).await,
                "webhooks" => self.read(client.webhooks(), List::updated_since).await,
                "events" => self.read(client.events(), |list, _| list).await,
                other => panic!("unknown collection {other}"),
            },
            ("create", "contacts") => self.create(client.contacts()).await,
            ("create", "bookings") => self.create(client.bookings()).await,
            ("create", "quotes") => self.create(client.quotes()).await,
            ("create", "jobs") => self.create(client.jobs()).await,
            ("create", "webhooks") => self.create(client.webhooks()).await,
            ("update", "contacts") => self.update(client.contacts()).await,
            ("update", "bookings") => self.update(client.bookings()).await,
            ("update", "quotes") => self.update(client.quotes()).await,
            ("update", "jobs") => self.update(client.jobs()).await,
            ("update", "webhooks") => self.update(client.webhooks()).await,
            ("delete", "contacts") => self.delete(client.contacts()).await,
            ("delete", "webhooks") => self.delete(client.webhooks()).await,
            ("sync", "contacts") => self.sync(client.contacts()).await,
            ("sync", "invoices") => self.sync(client.invoices()).await,
            ("sync", "bookings") => self.sync(client.bookings()).await,
            ("sync", "quotes") => self.sync(client.quotes()).await,
            ("sync", "jobs") => self.sync(client.jobs()).await,
            ("sync_events", _) => {
                let events = client.sync_events(step.position.unwrap_or_default());
                take(events, step.take, self.partial, page_json).await
            }
            ("webhook_deliveries", _) => {
                let deliveries = client.webhooks().deliveries(id(&step.id)?, input(&step.filter)?);
                take(deliveries, step.take, self.partial, record_json).await
            }
            ("delivery", _) => client.delivery(id(&step.id)?).await.map(|found| json!(found)),
            ("replay_delivery", _) => client.replay_delivery(id(&step.id)?).await.map(|found| json!(found)),
            ("replay_webhook", _) => {
                client.webhooks().replay(id(&step.id)?, &input(&step.input)?).await.map(|found| json!(found))
            }
            ("bulk_replay", _) => client.bulk_replay(id(&step.id)?).await.map(|found| json!(found)),
            ("receive", _) => self.receive(client).await,
            (call, collection) => panic!("unknown call {call} of {collection}"),
        }
    }

    /// Subscribes a receiver, and returns the event that it gets for a new contact.
    async fn receive(&self, client: &Client) -> Result<Value, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let new = Map::from_iter([("url".into(), url.into()), ("events".into(), self.step.events.clone().unwrap())]);
        let subscription = client.webhooks().create(&input(&new)?).await?;
        client.contacts().create(&input(self.step.trigger.as_ref().unwrap())?).await?;
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
        let headers: http::HeaderMap = request
            .headers
            .iter()
            .map(|(name, value)| {
                (name.parse::<http::HeaderName>().unwrap(), value.parse::<http::HeaderValue>().unwrap())
            })
            .collect();
        let verifier = Verifier::new(&subscription.secret).unwrap().without_max_age();
        let event: Delivered<Contact> = verifier.verify_event_headers(&headers, &request.body).unwrap();
        Ok(json!(event))
    }
}

/// Returns an error as the table has it.
fn described(error: &Error) -> Value {
    let ms = |wait: Option<Duration>| wait.map(|wait| u64::try_from(wait.as_millis()).unwrap());
    match error {
        Error::Api(error) => {
            let fields = error.errors.iter();
            let fields =
                fields.map(|field| json!({ "field": field.field, "code": field.code, "message": field.message }));
            json!({
                "kind": "api", "status": error.status, "code": error.code, "message": error.message, "field": error.field,
                "errors": fields.collect::<Vec<_>>(), "existing_id": error.existing_id,
                "retry_after_ms": ms(error.retry_after), "request_id": error.request_id, "attempts": error.attempts,
            })
        }
        Error::Transport(error) => {
            let kind = match error.kind {
                TransportErrorKind::NotConnected => "not_connected",
                TransportErrorKind::TimedOut => "timed_out",
                TransportErrorKind::ConnectionLost => "connection_lost",
                other => panic!("unknown kind {other:?}"),
            };
            json!({ "kind": "transport", "transport": kind, "attempts": error.attempts })
        }
        Error::UnexpectedResponse(error) => {
            assert!(error.start.chars().count() <= 200);
            let (status, start, attempts) = (error.status, &error.start, error.attempts);
            json!({ "kind": "unexpected_response", "status": status, "start": start, "attempts": attempts })
        }
        Error::InvalidArgument(_) => json!({ "kind": "invalid_argument" }),
        Error::TokensNotStored(_) => json!({ "kind": "tokens_not_stored" }),
        other => panic!("unknown error {other}"),
    }
}

impl ExpectedError {
    fn check(&self, error: &Value, place: &str) {
        matches(&error["kind"], &self.kind, &format!("{place}: {error}"));
        for (name, expected) in &self.rest {
            assert!(ERROR_FIELDS.contains(&name.as_str()), "{place}: unknown field {name}");
            let bounds = (name == "retry_after_ms")
                .then(|| Some((expected.get("from")?.as_u64()?, expected.get("to")?.as_u64()?)));
            match bounds.flatten() {
                Some((from, to)) => {
                    let found = error[name].as_u64().unwrap();
                    assert!((from..=to).contains(&found), "{place}.{name} is {found}");
                }
                None => matches(&error[name], expected, &format!("{place}.{name}")),
            }
        }
    }
}

/// Runs the steps of a case, one after the other.
pub(crate) async fn run(steps: &[Value], context: &Context<'_>) {
    let mut results: Vec<Value> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let raw = resolved(step, &results, context.unique);
        let step: Step =
            serde_json::from_value(raw.clone()).unwrap_or_else(|error| panic!("{}: {error}", context.name));
        let place = format!("{}: step {index} ({})", context.name, step.call);
        let target = match step.record {
            None => (step.id.clone(), None),
            Some(record) => {
                let text = |name: &str| results[record][name].as_str().unwrap().to_owned();
                (text("id"), Some(ETag::new(text("etag"))))
            }
        };
        let partial = Mutex::default();
        let call = Call { step: &step, partial: &partial, target };
        let begun = Instant::now();
        let mut outcome = Ok(Value::Null);
        for _ in 0..step.repeat_until_error.unwrap_or(1) {
            let calls = at_once(step.parallel.unwrap_or(1), async || call.make(&context.client).await);
            let all = match (step.cancel_after_requests, &context.server) {
                (None, _) => calls.await,
                // A call is cancelled by dropping it.
                (Some(count), Some(server)) => tokio::select! {
                    all = calls => all,
                    () = cancelled(server, count, context.wait_began.as_deref()) => Vec::new(),
                },
                (Some(_), None) => panic!("{place}: only a hostile case cancels"),
            };
            outcome =
                all.into_iter().map(|each| each.map_err(|error| described(&error))).try_fold(Value::Null, |_, each| {
                    let each = each?;
                    if let Some(expected) = raw.get("result") {
                        matches(&each, expected, &place);
                    }
                    Ok(each)
                });
            if step.cancel_after_requests.is_some() && outcome == Ok(Value::Null) {
                outcome = Err(json!({ "kind": "cancelled" }));
            }
            if outcome.is_err() {
                break;
            }
        }
        let elapsed = begun.elapsed();
        assert!(
            step.within_ms.is_none_or(|within| elapsed <= Duration::from_millis(within)),
            "{place} took {elapsed:?}"
        );
        match (&outcome, &step.error) {
            (Err(error), Some(expected)) => expected.check(error, &place),
            (Err(error), None) => panic!("{place}: {error}"),
            (Ok(result), Some(_)) => panic!("{place} should fail: {result}"),
            (Ok(_), None) => assert!(raw.get("result").is_some(), "{place}: a step has either a result or an error"),
        }
        if let Some(expected) = &step.partial {
            matches(&Value::Array(partial.lock().unwrap().clone()), expected, &place);
        }
        results.push(outcome.unwrap_or_default());
    }
}
