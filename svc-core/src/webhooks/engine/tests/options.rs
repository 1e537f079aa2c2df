//! Tests of what a subscription asks for: its own limits, its own retries, and an order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;
use crate::webhooks::options::TimeoutSeconds;
use crate::webhooks::replays::{self, ReplayCreate};
use crate::webhooks::signatures::SigningKeys;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookUpdate};

/// An endpoint with options, in a store of its own, and the attempts in flight.
struct Sender {
    store: MemoryStore,
    clock: ManualClock,
    tenant: TenantId,
    id: SubscriptionId,
    in_flight: Vec<Attempt>,
}

impl Sender {
    fn new(options: Value) -> Self {
        let (store, clock) = store_with_clock();
        let created = (&store as &dyn Store).write("fill", options, async |tx, options| {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
            let mut input = options.clone();
            input["url"] = "https://example.com".into();
            input["events"] = json!(["*"]);
            let input = WebhookCreate::from_body(input.to_string().as_bytes())?;
            Ok((tenant, crud::create::<WebhookSubscription>(tx, tenant, input).await?.id))
        });
        let (tenant, id) = created.now_or_never().unwrap().unwrap();
        Self { store, clock, tenant, id, in_flight: Vec::new() }
    }

    /// Emits an event of each of these records.
    fn emit(&self, records: &[&str]) {
        let records: Vec<Value> = records.iter().map(|id| json!({ "id": id, "city": "Perth" })).collect();
        let emit = (&self.store as &dyn Store).write("emit", (self.tenant, records), async |tx, (tenant, records)| {
            for data in records {
                events::record_external(tx, *tenant, EventKind::StayCreated, data).await?;
            }
            Ok(())
        });
        emit.now_or_never().unwrap().unwrap();
    }

    /// Claims what is due, and returns the records and the delays of the attempts.
    fn claim(&mut self) -> Vec<(String, u64)> {
        let claimed = run_step(&self.store, self.tenant, &[]);
        let of = |attempt: &Attempt| {
            let data: Value = serde_json::from_str(attempt.event.data.get()).unwrap();
            let delay = attempt.options.delay.as_millis();
            (data["id"].as_str().unwrap().to_owned(), u64::try_from(delay).unwrap())
        };
        let shown = claimed.iter().map(of).collect();
        self.in_flight.extend(claimed);
        shown
    }

    /// Ends the first attempt in flight with a status.
    fn end(&mut self, status: i32) {
        let Attempt { delivery, .. } = self.in_flight.remove(0);
        let outcome = AttemptResult { log: log(delivery.attempts, status), delivery, retry_after: None };
        let batch = Batch::outcomes_only(self.tenant, vec![outcome]);
        let batch = (&self.store as &dyn Store)
            .write("batch", batch, async |tx, batch| run_batch(tx, &Policy::default(), batch).await);
        batch.now_or_never().unwrap().unwrap();
    }

    fn pass(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    /// Returns in how many milliseconds the endpoint is due, or `None` if it is not.
    fn due_in(&self) -> Option<u64> {
        let due = (&self.store as &dyn Store).read("due", (), async |tx, ()| Ok(tx.next_endpoint_due().await?));
        let due = due.now_or_never().unwrap().unwrap()?;
        (due < Timestamp::MAX).then(|| u64::try_from(due.since(self.store.env().now()).as_millis()).unwrap())
    }

    fn pending(&self) -> Vec<Delivery> {
        let filter = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
        let list = (&self.store as &dyn Store).read("list", (self.tenant, filter), async |tx, (tenant, filter)| {
            Ok(tx.list_deliveries(*tenant, filter).await?)
        });
        list.now_or_never().unwrap().unwrap()
    }
}

fn names(claimed: &[(String, u64)]) -> Vec<&str> {
    claimed.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn an_endpoint_with_a_rate_gets_a_smooth_pace() {
    let mut sender = Sender::new(json!({ "max_per_second": 20 }));
    sender.emit(&["a", "b", "c", "d", "e"]);
    // Two are due within a tenth of a second, and begin 50 ms apart.
    assert_eq!(sender.claim(), [("a".to_owned(), 0), ("b".to_owned(), 50)]);
    assert_eq!(sender.due_in(), Some(100));
    sender.pass(99);
    assert_eq!(names(&sender.claim()), [""; 0]);
    sender.pass(1);
    assert_eq!(names(&sender.claim()), ["c", "d"]);
    // An outcome does not make the next one due earlier.
    sender.end(200);
    assert_eq!(sender.due_in(), Some(100));
    sender.pass(500);
    assert_eq!(sender.claim(), [("e".to_owned(), 0)], "what was not used is not saved up");
}

#[test]
fn a_rate_below_one_claim_is_kept() {
    let mut sender = Sender::new(json!({ "max_per_second": 1 }));
    sender.emit(&["a", "b"]);
    assert_eq!(names(&sender.claim()), ["a"]);
    assert_eq!(sender.due_in(), Some(1000));
    sender.pass(1000);
    assert_eq!(names(&sender.claim()), ["b"]);
}

#[test]
fn no_more_attempts_are_in_flight_than_were_asked_for() {
    let mut sender = Sender::new(json!({ "max_in_flight": 2 }));
    sender.emit(&["a", "b", "c", "d"]);
    // Each step is another process, which has nothing in flight itself.
    assert_eq!(names(&sender.claim()), ["a", "b"]);
    sender.pass(2000);
    assert_eq!(names(&sender.claim()), [""; 0]);
    sender.end(200);
    assert_eq!(names(&sender.claim()), ["c"]);
    // A lease that has ended is no attempt in flight.
    sender.pass(31_000);
    assert_eq!(sender.claim().len(), 2);
}

#[test]
fn the_next_delivery_of_a_record_waits_for_the_one_before() {
    let mut sender = Sender::new(json!({ "ordering": "record" }));
    sender.emit(&["a", "a", "b", "a", "b"]);
    assert_eq!(names(&sender.claim()), ["a", "b"], "others overtake");
    assert_eq!(names(&sender.claim()), [""; 0]);
    assert_eq!(sender.due_in(), Some(30_000), "the end of a lease alone wakes the sender");
    let shown = sender.pending().into_iter().map(crate::platform::Delivery::from).filter(|it| it.attempts == 0);
    assert!(shown.into_iter().all(|delivery| delivery.next_attempt_at.is_none()));

    sender.end(500);
    assert_eq!(names(&sender.claim()), [""; 0], "the first one is to be retried");
    sender.end(200);
    sender.pass(1_000);
    assert_eq!(names(&sender.claim()), ["b"]);
    sender.end(200);
    sender.pass(70_000);
    assert_eq!(names(&sender.claim()), ["a"], "the retry of the first");
    sender.end(200);
    assert_eq!(names(&sender.claim()), ["a"]);
    // One that has failed for good is given up, and the next one is sent.
    sender.end(410);
    sender.pass(60_000);
    assert_eq!(names(&sender.claim()), ["a"]);
    sender.end(200);
    assert_eq!(sender.pending(), []);
}

#[test]
fn without_an_order_nothing_waits() {
    let mut sender = Sender::new(json!({ "ordering": "none" }));
    sender.emit(&["a", "a", "a"]);
    assert_eq!(names(&sender.claim()), ["a", "a", "a"]);
}

#[test]
fn what_was_held_is_replayed_in_order() {
    let mut sender = Sender::new(json!({ "ordering": "record" }));
    sender.emit(&["a", "a", "a"]);
    let set = |sender: &Sender, enabled: bool| {
        let input = (sender.tenant, sender.id, enabled);
        let set = (&sender.store as &dyn Store).write("set", input, async |tx, &(tenant, id, enabled)| {
            let change = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            crud::update::<WebhookSubscription>(tx, tenant, id, change?).await
        });
        set.now_or_never().unwrap().unwrap();
    };
    set(&sender, false);
    set(&sender, true);
    let input = (sender.tenant, sender.id);
    let replay = (&sender.store as &dyn Store).write("replay", input, async |tx, &(tenant, id)| {
        replays::create(tx, tenant, ReplayCreate::new(id, Timestamp::from_micros(0))).await
    });
    replay.now_or_never().unwrap().unwrap();
    let mut sent = 0;
    for _ in 0..6 {
        sender.pass(100);
        sent += sender.claim().len();
        if !sender.in_flight.is_empty() {
            assert_eq!(sender.in_flight.len(), 1, "one at a time");
            sender.end(200);
        }
    }
    assert_eq!(sent, 3);
    assert_eq!(sender.pending(), []);
}

#[test]
fn a_subscription_has_its_own_timeout_and_retries() {
    let mut sender = Sender::new(json!({ "timeout": 25, "retry_schedule": [3600] }));
    sender.emit(&["a"]);
    sender.claim();
    assert_eq!(sender.in_flight[0].options.timeout, Some(Duration::from_secs(25)));
    let lease = sender.pending()[0].next_attempt_at.unwrap().since(sender.store.env().now());
    assert_eq!(lease, Duration::from_secs(60), "twice the timeout and 10 seconds more");
    sender.end(500);
    let wait = sender.pending()[0].next_attempt_at.unwrap().since(sender.store.env().now()).as_secs();
    assert!((3600..=3960).contains(&wait), "{wait}");
    sender.pass(4_000_000);
    sender.claim();
    sender.end(500);
    assert_eq!(sender.pending(), [], "there is one retry");
}

#[test]
fn the_operator_bounds_the_timeout() {
    let (store, _) = store_with_clock();
    let (_, mut subscription) = fill(&store, 0);
    subscription.timeout = TimeoutSeconds::new(30).ok();
    let policy = Policy { max_timeout: Duration::from_secs(7), ..Policy::default() };
    assert_eq!(policy.of(&subscription).timeout, Duration::from_secs(7));
    assert_eq!(Policy::default().of(&subscription).timeout, Duration::from_secs(30));
}

#[test]
fn only_events_that_pass_the_filter_are_stored_for_it() {
    let mut sender = Sender::new(json!({ "filter": "data.id != \"b\" and data.city == \"Perth\"" }));
    sender.emit(&["a", "b", "c"]);
    assert_eq!(names(&sender.claim()), ["a", "c"]);
    assert_eq!(sender.pending().len(), 2);
}

#[test]
fn a_thin_event_has_the_ids_alone_and_further_headers_are_sent() {
    let mut sender = Sender::new(json!({
        "payload": "thin",
        "headers": { "X-Team": "ledger" },
        "authentication": { "type": "bearer", "token": "t0ken" },
    }));
    sender.emit(&["a"]);
    sender.claim();
    let attempt = &sender.in_flight[0];
    let body: Value = serde_json::from_slice(&attempt.body(store().env().now())).unwrap();
    assert_eq!(
        body,
        json!({
            "event": "stay.created",
            "event_id": attempt.event.id,
            "data": { "id": "a" },
            "delivered_at": "2026-03-14T15:09:26.535897Z",
            "tenant_id": sender.tenant,
        })
    );
    let headers: Vec<(&str, &str)> =
        attempt.options.headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    assert_eq!(headers, [("x-team", "ledger"), ("authorization", "Bearer t0ken")]);
    let debug = format!("{attempt:?}");
    assert!(!debug.contains("ledger") && !debug.contains("t0ken"), "{debug}");
}

/// An action on the keys of a subscription.
enum Step {
    Rotate,
    Finish,
    Set(&'static str),
}

/// Deliveries have a signature that a public key verifies: two during the overlap of a rotation, and none without the option.
#[test]
fn a_delivery_is_signed_for_the_public_keys_of_its_subscription() {
    let mut sender = Sender::new(json!({ "signature": "ed25519" }));
    let mut keys_after = |step: Option<Step>| {
        let changed = (&sender.store as &dyn Store).write(
            "change",
            (sender.tenant, sender.id, step),
            async |tx, (tenant, id, step)| match step {
                None => crud::get(tx, *tenant, *id).await,
                Some(Step::Rotate) => subscriptions::rotate_secret(tx, *tenant, *id, Duration::from_secs(60)).await,
                Some(Step::Finish) => subscriptions::finish_rotation(tx, *tenant, *id).await,
                Some(Step::Set(change)) => {
                    crud::update(tx, *tenant, *id, WebhookUpdate::from_body(change.as_bytes())?).await
                }
            },
        );
        let subscription: WebhookSubscription = changed.now_or_never().unwrap().unwrap();
        sender.emit(&["a"]);
        sender.claim();
        keys_that_signed(&sender.in_flight.pop().unwrap(), &subscription)
    };
    let first = keys_after(None);
    assert_eq!(first.len(), 1);
    let both = keys_after(Some(Step::Rotate));
    assert_eq!((both.len(), &both[1..]), (2, &first[..]));
    assert_eq!(keys_after(Some(Step::Finish)), both[..1]);
    assert_eq!(keys_after(Some(Step::Set(r#"{"signature":"ed25519"}"#))), both[..1], "it had been so");
    assert_eq!(keys_after(Some(Step::Set(r#"{"signature":null}"#))), [""; 0]);
    let new = keys_after(Some(Step::Set(r#"{"signature":"ed25519"}"#)));
    assert!(new.len() == 1 && new != both[..1]);
    assert_eq!(keys_after(Some(Step::Set(r#"{"signature":"hmac"}"#))), [""; 0]);
}

/// Returns the public keys for which the request of an attempt has a signature.
fn keys_that_signed(attempt: &Attempt, subscription: &WebhookSubscription) -> Vec<String> {
    let now = Timestamp::from_micros(1_773_500_966_000_000);
    let body = attempt.body(now);
    let headers: BTreeMap<_, _> = attempt.headers(now, &body).into_iter().collect();
    let signed = [headers["webhook-id"].as_bytes(), headers["webhook-timestamp"].as_bytes(), &body].join(&b'.');
    let entries: Vec<&str> = headers["webhook-signature"].split(' ').collect();
    let signatures: Vec<_> = entries.iter().filter_map(|entry| entry.strip_prefix("v1a,")).collect();
    assert_eq!(entries.len(), attempt.secrets.len() + signatures.len());
    let verifies = |key: &String, signature: &str| {
        let bytes = STANDARD.decode(key.strip_prefix("whpk_").unwrap()).unwrap();
        let key = ed25519_dalek::VerifyingKey::from_bytes(&bytes.try_into().unwrap()).unwrap();
        let signature = ed25519_dalek::Signature::from_slice(&STANDARD.decode(signature).unwrap()).unwrap();
        key.verify_strict(&signed, &signature).is_ok()
    };
    let keys = subscription.signing_keys.iter().flat_map(SigningKeys::iter).map(|key| key.public_key.clone());
    let signed_for: Vec<String> =
        keys.filter(|key| signatures.iter().any(|signature| verifies(key, signature))).collect();
    assert_eq!(signed_for.len(), signatures.len(), "each signature is for one of the keys");
    signed_for
}
