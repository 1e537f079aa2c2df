//! Streams: order, failures, leases and what is kept for a broker that is away.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::ManualClock;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::sandboxes;
use svc_core::store::Store;
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::streams::{
    self, ACCOUNTS, Broker, EVENTS, LEASE, Lag, Message, Next, PublishError, Sender, StepReport, StreamKey,
};
use svc_core::webhooks::{events, retention};

use super::Rules;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A broker that stores messages, and fails at those that the test says.
#[derive(Default)]
struct Fake {
    stored: Mutex<Vec<Message>>,
    /// The numbers of the messages that fail, of all that were tried.
    fails: Mutex<BTreeSet<usize>>,
    /// Contacts whose messages are refused.
    refused: Mutex<BTreeSet<String>>,
    tried: Mutex<usize>,
    /// Whether a message is stored although its confirmation is lost.
    loses_confirmations: Mutex<bool>,
    is_away: Mutex<bool>,
}

#[async_trait]
impl Broker for Fake {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let number = {
            let mut tried = self.tried.lock().unwrap();
            *tried += 1;
            *tried
        };
        let fails = *self.is_away.lock().unwrap() || self.fails.lock().unwrap().contains(&number);
        if !fails || *self.loses_confirmations.lock().unwrap() {
            let data: Value = serde_json::from_str(messages[0].event.data.get()).unwrap();
            if self.refused.lock().unwrap().contains(data["first_name"].as_str().unwrap_or_default()) {
                return Err(PublishError::Refused("too large".to_owned()));
            }
            self.stored.lock().unwrap().push(messages[0].clone());
        }
        if fails { Err(PublishError::Unavailable("no connection".to_owned())) } else { Ok(1) }
    }
}

impl Fake {
    /// Returns the first names of the contacts in the order in which their messages were stored.
    fn names_of(&self, tenant: TenantId) -> Vec<String> {
        let stored = self.stored.lock().unwrap();
        let of_tenant = stored.iter().filter(|message| message.event.tenant_id == tenant);
        let name = |message: &Message| {
            let data: Value = serde_json::from_str(message.event.data.get()).unwrap();
            data["first_name"].as_str().unwrap_or_default().to_owned()
        };
        of_tenant.map(name).collect()
    }
}

impl Rules {
    fn sender(&self) -> Sender {
        Sender::new(self.store().env(), StreamKey::SERVER)
    }

    /// Returns a sender of the stream of the server, which begins now.
    fn stream(&self, broker: &Fake) -> Sender {
        let mut sender = self.sender();
        assert!(self.send(&mut sender, broker).is_held);
        self.clock.advance(Duration::from_secs(1));
        sender
    }

    fn send(&self, sender: &mut Sender, broker: &Fake) -> StepReport {
        let store: &dyn Store = &**self.store();
        sender.step(store, broker).now_or_never().unwrap().unwrap()
    }

    /// Takes steps until there is nothing to do at once.
    fn run(&self, sender: &mut Sender, broker: &Fake) -> StepReport {
        loop {
            let report = self.send(sender, broker);
            if report.next != Next::Now {
                return report;
            }
        }
    }

    fn other_tenant(&self) -> TenantId {
        self.write((), async |tx, ()| tenants::create(tx, TenantCreate::named("Other")).await).unwrap().id
    }

    /// Creates contacts with these first names.
    fn contacts(&self, tenant: TenantId, names: &[&str]) {
        for name in names {
            let body = json!({ "email": format!("{name}@example.com"), "first_name": name }).to_string();
            let input = ContactCreate::from_body(body.as_bytes()).unwrap();
            self.write((tenant, input), async |tx, (tenant, input)| {
                crud::create::<Contact>(tx, *tenant, input.clone()).await
            })
            .unwrap();
        }
    }

    fn lag(&self) -> Lag {
        self.write((), async |tx, ()| streams::lag(tx, StreamKey::SERVER).await).unwrap()
    }

    /// Deletes what is older than the retention, and returns how many events that were.
    fn sweep(&self, retention: Duration) -> u64 {
        let store: &dyn Store = &**self.store();
        let before = self.store().env().now().minus(retention);
        let mut positions = retention::Positions::new();
        let swept = retention::sweep(store, &mut positions, before, false, || async {}).now_or_never().unwrap();
        swept.unwrap().events
    }
}

#[test]
fn a_stream_begins_when_it_is_turned_on_and_sends_everything_of_newer_accounts() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    fixture.contacts(fixture.tenant, &["before"]);
    fixture.clock.advance(Duration::from_secs(1));
    let mut sender = fixture.stream(&broker);
    fixture.contacts(fixture.tenant, &["after"]);
    let newer = fixture.other_tenant();
    fixture.contacts(newer, &["first"]);
    assert_eq!(fixture.run(&mut sender, &broker).next, Next::Poll);
    assert_eq!((broker.names_of(fixture.tenant), broker.names_of(newer)), (vec!["after".into()], vec!["first".into()]));
    assert_eq!(fixture.lag(), Lag::default());
}

#[test]
fn a_message_has_the_body_of_a_delivery_and_its_headers_name_the_event() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    fixture.contacts(fixture.tenant, &["ada"]);
    fixture.run(&mut sender, &broker);
    let stored = broker.stored.lock().unwrap();
    let (message, event) = (&stored[0], &fixture.new_events()[0]);
    let body: Value = serde_json::from_slice(&message.body()).unwrap();
    let data: Value = serde_json::from_str(event.data.get()).unwrap();
    assert_eq!(
        body,
        json!({ "event": "contact.created", "data": data, "delivered_at": event.created_at, "tenant_id": fixture.tenant })
    );
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("x-svc-event", "contact.created".to_owned()),
        ("x-svc-event-id", event.id.to_string()),
        ("x-svc-account", fixture.tenant.to_string()),
    ];
    assert_eq!(message.headers(), headers);
}

#[test]
fn events_of_an_account_are_sent_in_their_order_however_many_there_are() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    let names: Vec<String> = (0..3 * EVENTS + 1).map(|number| format!("n{number}")).collect();
    fixture.contacts(fixture.tenant, &names.iter().map(String::as_str).collect::<Vec<_>>());
    fixture.run(&mut sender, &broker);
    assert_eq!(broker.names_of(fixture.tenant), names);
}

#[test]
fn many_accounts_are_sent_in_several_steps() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    let accounts: Vec<TenantId> = (0..2 * ACCOUNTS + 1).map(|_| fixture.other_tenant()).collect();
    accounts.iter().for_each(|account| fixture.contacts(*account, &["ada", "grace"]));
    assert_eq!(fixture.lag().accounts, 2 * ACCOUNTS + 1);
    fixture.run(&mut sender, &broker);
    for account in accounts {
        assert_eq!(broker.names_of(account), ["ada", "grace"]);
    }
}

#[test]
fn a_failure_in_the_middle_of_a_batch_keeps_the_order_and_loses_nothing() {
    for loses_confirmations in [false, true] {
        let (fixture, broker) = (Rules::new(), Fake::default());
        let mut sender = fixture.stream(&broker);
        *broker.loses_confirmations.lock().unwrap() = loses_confirmations;
        fixture.contacts(fixture.tenant, &["a", "b", "c", "d"]);
        broker.fails.lock().unwrap().insert(3);
        let report = fixture.send(&mut sender, &broker);
        assert_eq!((report.sent, report.failures.len()), (2, 1));
        assert!(matches!(report.next, Next::Wait(wait) if wait > Duration::ZERO), "{:?}", report.next);
        assert_eq!(fixture.run(&mut sender, &broker).sent, 2);
        // A message whose confirmation was lost is there twice, with the same bytes.
        let expected: &[&str] = if loses_confirmations { &["a", "b", "c", "c", "d"] } else { &["a", "b", "c", "d"] };
        assert_eq!(broker.names_of(fixture.tenant), expected);
        let stored = broker.stored.lock().unwrap();
        if loses_confirmations {
            assert_eq!((stored[2].event.id, stored[2].body()), (stored[3].event.id, stored[3].body()));
        }
    }
}

#[test]
fn an_account_whose_message_is_refused_waits_alone() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    let other = fixture.other_tenant();
    broker.refused.lock().unwrap().insert("huge".to_owned());
    fixture.contacts(fixture.tenant, &["ada", "huge", "grace"]);
    let report = fixture.run(&mut sender, &broker);
    assert_eq!((report.failures.len(), report.next), (1, Next::Poll));
    fixture.contacts(other, &["edsger"]);
    let report = fixture.run(&mut sender, &broker);
    assert_eq!((report.failures, report.next), (vec![], Next::Poll), "it is not tried again at once");
    assert_eq!((broker.names_of(other).len(), broker.names_of(fixture.tenant)), (1, vec!["ada".to_owned()]));
    // The operator has raised the limit of the broker.
    broker.refused.lock().unwrap().clear();
    fixture.clock.advance(Duration::from_secs(60));
    fixture.run(&mut sender, &broker);
    assert_eq!(broker.names_of(fixture.tenant), ["ada", "huge", "grace"]);
}

#[test]
fn many_accounts_that_wait_by_themselves_stop_no_other() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    broker.refused.lock().unwrap().insert("huge".to_owned());
    let accounts: Vec<TenantId> = (0..10 * ACCOUNTS).map(|_| fixture.other_tenant()).collect();
    accounts.iter().for_each(|account| fixture.contacts(*account, &["huge"]));
    let report = fixture.run(&mut sender, &broker);
    assert_eq!((report.sent, report.next), (0, Next::Poll), "nothing is tried again at once");
    let last = fixture.other_tenant();
    fixture.contacts(last, &["ada"]);
    let report = fixture.send(&mut sender, &broker);
    assert_eq!((report.sent, report.failures.len(), report.next), (1, 0, Next::Poll));
    assert_eq!(broker.names_of(last), ["ada"]);
}

#[test]
fn an_broker_that_is_away_for_an_hour_gets_everything_once_it_is_back() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    *broker.is_away.lock().unwrap() = true;
    let (mut names, mut waits) = (Vec::new(), Vec::new());
    let back_at = fixture.store().env().now().checked_add(Duration::from_secs(60 * 60)).unwrap();
    while fixture.store().env().now() < back_at {
        names.push(format!("n{}", names.len()));
        fixture.contacts(fixture.tenant, &[names.last().unwrap()]);
        let report = fixture.send(&mut sender, &broker);
        let Next::Wait(wait) = report.next else { unreachable!("{report:?}") };
        waits.push(wait);
        fixture.clock.advance(wait);
    }
    assert!(waits[0] < Duration::from_secs(1) && waits.iter().all(|wait| *wait <= Duration::from_secs(30)));
    assert!(waits.len() < 300, "{} attempts", waits.len());
    let oldest = fixture.lag().oldest.unwrap();
    assert!(fixture.store().env().now().since(oldest) >= Duration::from_secs(3_500));
    *broker.is_away.lock().unwrap() = false;
    fixture.run(&mut sender, &broker);
    assert_eq!(broker.names_of(fixture.tenant), names);
    assert_eq!(fixture.lag(), Lag::default());
}

#[test]
fn one_process_sends_at_a_time_and_another_takes_over_when_its_lease_ends() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let (mut first, mut second) = (fixture.stream(&broker), fixture.sender());
    fixture.contacts(fixture.tenant, &["a"]);
    assert!(!fixture.send(&mut second, &broker).is_held);
    assert!(fixture.send(&mut first, &broker).is_held);
    fixture.contacts(fixture.tenant, &["b"]);
    // The first process was killed.
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.run(&mut second, &broker).sent, 1);
    assert_eq!(broker.names_of(fixture.tenant), ["a", "b"]);
    assert!(!fixture.send(&mut first, &broker).is_held);
}

#[test]
fn a_lease_that_is_given_back_is_free_at_once() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let (mut first, mut second) = (fixture.stream(&broker), fixture.sender());
    let store: &dyn Store = &**fixture.store();
    first.release(store).now_or_never().unwrap().unwrap();
    assert!(fixture.send(&mut second, &broker).is_held);
    assert!(!fixture.send(&mut first, &broker).is_held);
}

/// A broker at which another process takes the lease while a message is published.
struct TakenOver<'a> {
    store: &'a dyn Store,
    clock: ManualClock,
    broker: &'a Fake,
    second: Mutex<Option<Sender>>,
}

#[async_trait]
impl Broker for TakenOver<'_> {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        let second = self.second.lock().unwrap().take();
        if let Some(mut second) = second {
            self.clock.advance(LEASE);
            assert_eq!(second.step(self.store, self.broker).now_or_never().unwrap().unwrap().sent, 2);
        }
        self.broker.publish(messages).await
    }
}

#[test]
fn a_process_that_lost_its_lease_moves_no_position_and_repeats_one_message_at_most() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut first = fixture.stream(&broker);
    fixture.contacts(fixture.tenant, &["a", "b"]);
    let (clock, second) = (fixture.clock.clone(), Mutex::new(Some(fixture.sender())));
    let slow = TakenOver { store: &**fixture.store(), clock, broker: &broker, second };
    let store: &dyn Store = &**fixture.store();
    let report = first.step(store, &slow).now_or_never().unwrap().unwrap();
    assert_eq!((report.is_held, report.sent), (false, 1));
    // What the second one sent comes before the repetition, so whoever drops duplicates sees the order.
    assert_eq!(broker.names_of(fixture.tenant), ["a", "b", "a"]);
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.run(&mut first, &broker).sent, 0);
}

#[test]
fn events_that_are_not_sent_yet_outlive_the_retention_while_the_stream_is_used() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    fixture.contacts(fixture.tenant, &["a"]);
    fixture.run(&mut sender, &broker);
    *broker.is_away.lock().unwrap() = true;
    fixture.contacts(fixture.tenant, &["b"]);
    for _ in 0..40 {
        fixture.clock.advance(DAY);
        fixture.send(&mut sender, &broker);
    }
    assert_eq!((fixture.sweep(30 * DAY), fixture.sweep(30 * DAY)), (1, 0), "what was sent is deleted, the rest stays");
    *broker.is_away.lock().unwrap() = false;
    fixture.run(&mut sender, &broker);
    assert_eq!(broker.names_of(fixture.tenant), ["a", "b"]);
    assert_eq!(fixture.sweep(30 * DAY), 1);
}

#[test]
fn a_stream_that_was_turned_off_keeps_no_event_for_longer_than_the_retention() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    fixture.contacts(fixture.tenant, &["a"]);
    fixture.clock.advance(31 * DAY);
    assert_eq!(fixture.sweep(30 * DAY), 1);
    // It goes on with what is there once it is turned on again.
    fixture.contacts(fixture.tenant, &["b"]);
    fixture.run(&mut sender, &broker);
    assert_eq!(broker.names_of(fixture.tenant), ["b"]);
}

/// A broker that is slow enough for an account to delete its sandbox while a message is published.
struct DeletesSandbox<'f> {
    store: &'f dyn Store,
    owner: TenantId,
    deleted: Mutex<bool>,
}

#[async_trait]
impl Broker for DeletesSandbox<'_> {
    async fn publish(&self, messages: &[Message]) -> Result<usize, PublishError> {
        if messages[0].is_sandbox && !std::mem::replace(&mut *self.deleted.lock().unwrap(), true) {
            loop {
                let step =
                    self.store.write("test", self.owner, async |tx, &owner| sandboxes::delete_step(tx, owner).await);
                if step.await.unwrap().is_done {
                    break;
                }
            }
        }
        Ok(messages.len())
    }
}

#[test]
fn a_sandbox_that_is_deleted_while_it_is_sent_leaves_no_position() {
    let fixture = Rules::new();
    let mut sender = fixture.stream(&Fake::default());
    let owner = fixture.tenant;
    let sandbox = fixture.write(owner, async |tx, &owner| sandboxes::create(tx, owner).await).unwrap().sandbox.id;
    fixture.contacts(owner, &["ada"]);
    let broker = DeletesSandbox { store: &**fixture.store(), owner, deleted: Mutex::new(false) };
    let store: &dyn Store = &**fixture.store();
    let report = sender.step(store, &broker).now_or_never().unwrap().unwrap();
    assert!(report.is_held && report.sent > 1, "{report:?}");
    assert!(*broker.deleted.lock().unwrap());
    let position = async |tenant: TenantId| {
        let read = store.read("test", tenant, async |tx, &tenant| {
            Ok(tx.sent_by_all_until(tenant, Timestamp::from_micros(0)).await?.unwrap())
        });
        read.await.unwrap()
    };
    let (of_owner, of_sandbox) = (position(owner).now_or_never().unwrap(), position(sandbox).now_or_never().unwrap());
    assert!(of_owner > of_sandbox, "the sandbox has no position, only the beginning of the stream");
    let begins_at = store.read("test", (), async |tx, ()| Ok(tx.stream(StreamKey::SERVER).await?.unwrap().begins_at));
    assert_eq!(Ok(of_sandbox), begins_at.now_or_never().unwrap());
}

/// What one step reads is in memory at once.
#[test]
fn large_events_of_many_accounts_are_published_in_several_steps() {
    let (fixture, broker) = (Rules::new(), Fake::default());
    let mut sender = fixture.stream(&broker);
    let tenants: Vec<TenantId> = (0..12).map(|_| fixture.other_tenant()).collect();
    for tenant in &tenants {
        for id in 0..3 {
            let stay = json!({ "id": id, "text": "x".repeat(1_000_000) });
            let emitted = fixture.write((*tenant, stay), async |tx, (tenant, stay)| {
                events::record_external(tx, *tenant, EventKind::StayCreated, stay).await.map(drop)
            });
            emitted.unwrap();
        }
    }
    let (mut steps, mut sent) = (Vec::new(), 0);
    while sent < 36 {
        fixture.clock.advance(Duration::from_secs(1));
        let report = fixture.send(&mut sender, &broker);
        assert!(report.sent <= 21, "a step has 16 MiB, and what one account has of 3 MiB at most: {}", report.sent);
        sent += report.sent;
        steps.push(report.sent);
    }
    assert!(steps.len() > 1, "{steps:?}");
    for tenant in tenants {
        let stored = broker.stored.lock().unwrap();
        let ids = stored
            .iter()
            .filter(|message| message.event.tenant_id == tenant)
            .map(|message| serde_json::from_str::<Value>(message.event.data.get()).unwrap()["id"].as_u64().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2], "each of them once, and in their order");
    }
}
