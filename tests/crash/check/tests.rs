//! Tests of the checker: it accepts a correct run, and reports each single error in it.

use serde_json::{Value, json};
use svc_core::values::EventKind;
use svc_core::values::{EventSet, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId, DeliveryStatus};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::SubscriptionId;
use svc_test_support::fixture::attempt_log;
use uuid::Uuid;

use super::{CheckResult, check};
use crate::fixture::{Behavior, Subscription, Tenant, Tenants};
use crate::journal::{Arrival, Collection, Entry, InterruptedAttempt, Operation};
use crate::receiver::ReceiverJournal;
use crate::state::DatabaseState;

const TENANT: TenantId = TenantId(Uuid::from_u128(1));
const SUBSCRIPTION: SubscriptionId = SubscriptionId::new(Uuid::from_u128(2));

/// The data of a run with one tenant and one subscription to all events.
struct Run {
    entries: Vec<Entry>,
    journal: ReceiverJournal,
    interrupted: Vec<InterruptedAttempt>,
    state: DatabaseState,
}

fn contact(city: Option<&str>) -> Value {
    json!({ "id": "c-1", "email": "ada@example.com", "city": city })
}

fn quote() -> Value {
    json!({ "id": "q-1", "total": 7, "quote_number": "QUO-0001" })
}

fn log(attempt: u32, status: i32) -> AttemptLog {
    AttemptLog { duration_ms: 1, ..attempt_log(attempt, Timestamp::from_micros(1), status) }
}

/// Returns a correct run: a contact was created and changed, and a quote was created. The second delivery was in
/// progress at a kill.
fn correct_run() -> Run {
    let entry = |operation, response| Entry {
        tenant: 0,
        operation,
        sent: 1,
        refused: 0,
        acknowledged_during_outage: false,
        replayed: false,
        response: Some(response),
    };
    let create = |collection, unique_value| Operation::Create { collection, unique_value, with_idempotency_key: true };
    let mut run = Run {
        entries: vec![
            entry(create(Collection::Contacts, json!("ada@example.com")), contact(None)),
            entry(
                Operation::ChangeCity { contact: "c-1".to_owned(), city: "Perth".to_owned() },
                contact(Some("Perth")),
            ),
            entry(create(Collection::Quotes, json!(7)), quote()),
        ],
        journal: ReceiverJournal::default(),
        interrupted: Vec::new(),
        state: DatabaseState {
            rows: vec![(Collection::Contacts, vec![contact(Some("Perth"))]), (Collection::Quotes, vec![quote()])],
            events: Vec::new(),
            deliveries: Vec::new(),
        },
    };
    let kinds = [EventKind::ContactCreated, EventKind::ContactUpdated, EventKind::QuoteCreated];
    for (number, (kind, data)) in (10_u8..).zip(kinds.into_iter().zip([contact(None), contact(Some("Perth")), quote()]))
    {
        let created_at = Timestamp::from_micros(i64::from(number));
        let id = Uuid::from_u128(number.into()).into();
        let raw = serde_json::value::to_raw_value(&data).unwrap();
        let event = Event { id, tenant_id: TENANT, kind, data: raw, created_at, only_for: None };
        let mut delivery = event.delivery_to(Uuid::from_u128(u128::from(number) + 100).into(), SUBSCRIPTION, false);
        let attempts = if number == 11 { 2 } else { 1 };
        (delivery.status, delivery.attempts, delivery.next_attempt_at) = (DeliveryStatus::Succeeded, attempts, None);
        for attempt in 1..=attempts {
            let (kind, data) = (kind.to_string(), data.clone());
            let (subscription, delivery) = (SUBSCRIPTION, delivery.id);
            run.journal.arrivals.push(Arrival { subscription, delivery, attempt, kind, data, accepted: true });
        }
        if number == 11 {
            run.interrupted.push((delivery.id, Uuid::from_u128(3)));
        }
        run.state.deliveries.push((delivery, vec![log(attempts, 204)]));
        run.state.events.push(event);
    }
    run
}

fn check_run(run: &Run) -> CheckResult {
    let subscription =
        Subscription { id: SUBSCRIPTION, secret: String::new(), events: EventSet::All, behavior: Behavior::Immediate };
    let fixture =
        Tenants { tenants: vec![Tenant { id: TENANT, key: String::new(), subscriptions: vec![subscription] }] };
    check(&fixture, &run.entries, &run.journal, &run.interrupted, std::slice::from_ref(&run.state))
}

#[test]
fn a_correct_run_has_no_violations() {
    let result = check_run(&correct_run());
    assert_eq!(result.violations, Vec::<String>::new());
    assert!(result.summary.contains("3 events, 3 deliveries, 4 arrivals, 0 lost"), "{}", result.summary);
    assert!(result.summary.contains("1 repeats, of 1 attempts"), "{}", result.summary);
}

#[test]
fn every_error_is_reported() {
    type Corruption = fn(&mut Run);
    let cases: [(&str, Corruption); 23] = [
        ("has 0 × row", |run| run.state.rows[0].1.clear()),
        ("has 2 × row", |run| run.state.rows[1].1.push(quote())),
        ("0 × row with the id of the response", |run| run.entries[2].response = Some(json!({ "id": "q-2" }))),
        ("0 × contact.updated", |run| drop(run.state.events.remove(1))),
        ("2 × quote.created", |run| run.state.events.push(run.state.events[2].clone())),
        ("no request created", |run| run.entries.truncate(2)),
        ("no request caused contact.updated", |run| drop(run.entries.remove(1))),
        ("c-1 has events, but is not in the database", |run| run.state.rows[0].1.clear()),
        ("differs from its last event", |run| run.state.rows[0].1[0]["city"] = json!("Hobart")),
        ("quote number 1 is missing", |run| run.state.rows[1].1[0]["quote_number"] = json!("QUO-0002")),
        ("has deliveries to [] instead of", |run| drop(run.state.deliveries.remove(0))),
        ("has deliveries to", |run| run.state.deliveries.push(run.state.deliveries[0].clone())),
        ("the delivery is lost", |run| drop(run.journal.arrivals.remove(0))),
        ("is held after", |run| run.state.deliveries[0].0.status = DeliveryStatus::Held),
        ("arrived, but is not in the database", |run| run.journal.arrivals[0].delivery = DeliveryId::max()),
        ("has 1 attempts without an outcome, but 0 were", |run| run.interrupted.clear()),
        ("arrived again after attempt 1 had succeeded", |run| run.state.deliveries[1].1.insert(0, log(1, 204))),
        ("arrived as the attempts [1, 1]", |run| run.journal.arrivals[2].attempt = 1),
        ("instead of contact.created", |run| run.journal.arrivals[0].data = quote()),
        ("was acknowledged while nothing could be written", |run| run.entries[0].acknowledged_during_outage = true),
        ("was refused 1 times although it had been done", |run| {
            let entry = &mut run.entries[2];
            (entry.sent, entry.refused, entry.replayed) = (2, 1, true);
        }),
        ("was refused after 1 requests, and has 1 × row", |run| {
            let entry = &mut run.entries[2];
            (entry.refused, entry.response) = (1, None);
        }),
        ("a wrong signature", |run| run.journal.refused.push("a wrong signature".to_owned())),
    ];
    for (wanted, corrupt) in cases {
        let mut run = correct_run();
        corrupt(&mut run);
        let violations = check_run(&run).violations;
        assert!(violations.iter().any(|violation| violation.contains(wanted)), "{wanted}: {violations:#?}");
    }
}

/// A write with an unknown outcome may be present or absent, but not twice.
#[test]
fn a_write_with_an_unknown_outcome_may_be_present_or_absent() {
    let mut run = correct_run();
    run.entries[2].response = None;
    assert_eq!(check_run(&run).violations, Vec::<String>::new());
    run.state.rows[1].1.clear();
    run.state.events.remove(2);
    run.state.deliveries.remove(2);
    run.journal.arrivals.pop();
    assert_eq!(check_run(&run).violations, Vec::<String>::new());
    let mut run = correct_run();
    run.entries[2].response = None;
    run.state.rows[1].1.push(json!({ "id": "q-2", "total": 7, "quote_number": "QUO-0002" }));
    assert!(check_run(&run).violations.iter().any(|violation| violation.contains("had an unknown outcome")));
}
