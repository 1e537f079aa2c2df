//! The checker itself: content with a sound run, and not with one thing wrong in it.

use serde_json::{Value, json};
use svc_core::values::EventKind;
use svc_core::values::{EventSet, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryStatus};
use svc_core::webhooks::events::Event;
use uuid::Uuid;

use super::{Verdict, check};
use crate::found::Found;
use crate::journal::{Abandoned, Arrival, Collection, Entry, Wish};
use crate::receiver::Noted;
use crate::world::{Hook, Temper, Tenant, World};

const TENANT: TenantId = TenantId(Uuid::from_u128(1));
const HOOK: Uuid = Uuid::from_u128(2);

/// A run of one tenant with one subscription to everything.
struct Run {
    entries: Vec<Entry>,
    noted: Noted,
    abandoned: Vec<Abandoned>,
    found: Found,
}

fn contact(city: Option<&str>) -> Value {
    json!({ "id": "c-1", "email": "ada@example.com", "city": city })
}

fn quote() -> Value {
    json!({ "id": "q-1", "total": 7, "quote_number": "QUO-0001" })
}

fn log(attempt: u32, status: i32) -> AttemptLog {
    AttemptLog {
        attempt,
        started_at: Timestamp::from_micros(1),
        duration_ms: 1,
        status,
        error: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

/// A contact that was created and moved, and a quote that was created; the second delivery was under way at a kill.
fn sound() -> Run {
    let entry = |wish, answer| Entry {
        tenant: 0,
        wish,
        sent: 1,
        refused: 0,
        too_good: false,
        replayed: false,
        answer: Some(answer),
    };
    let create = |collection, mark| Wish::Create { collection, mark, keyed: true };
    let mut run = Run {
        entries: vec![
            entry(create(Collection::Contacts, json!("ada@example.com")), contact(None)),
            entry(Wish::Move { contact: "c-1".to_owned(), city: "Perth".to_owned() }, contact(Some("Perth"))),
            entry(create(Collection::Quotes, json!(7)), quote()),
        ],
        noted: Noted::default(),
        abandoned: Vec::new(),
        found: Found {
            rows: vec![(Collection::Contacts, vec![contact(Some("Perth"))]), (Collection::Quotes, vec![quote()])],
            events: Vec::new(),
            deliveries: Vec::new(),
        },
    };
    let kinds = [EventKind::ContactCreated, EventKind::ContactUpdated, EventKind::QuoteCreated];
    for (number, (kind, data)) in (10_u8..).zip(kinds.into_iter().zip([contact(None), contact(Some("Perth")), quote()]))
    {
        let created_at = Timestamp::from_micros(i64::from(number));
        let id = Uuid::from_u128(number.into());
        let raw = serde_json::value::to_raw_value(&data).unwrap();
        let event = Event { id, tenant_id: TENANT, kind, data: raw, created_at, only_for: None };
        let mut delivery = event.delivery_to(Uuid::from_u128(u128::from(number) + 100), HOOK, false);
        let attempts = if number == 11 { 2 } else { 1 };
        (delivery.status, delivery.attempts, delivery.next_attempt_at) = (DeliveryStatus::Succeeded, attempts, None);
        for attempt in 1..=attempts {
            let (kind, data) = (kind.to_string(), data.clone());
            let (subscription, delivery) = (HOOK, delivery.id);
            run.noted.arrivals.push(Arrival { subscription, delivery, attempt, kind, data, accepted: true });
        }
        if number == 11 {
            run.abandoned.push((delivery.id, Uuid::from_u128(3)));
        }
        run.found.deliveries.push((delivery, vec![log(attempts, 204)]));
        run.found.events.push(event);
    }
    run
}

fn judge(run: &Run) -> Verdict {
    let hook = Hook { id: HOOK, secret: String::new(), events: EventSet::All, temper: Temper::Prompt };
    let world = World { tenants: vec![Tenant { id: TENANT, key: String::new(), hooks: vec![hook] }] };
    check(&world, &run.entries, &run.noted, &run.abandoned, std::slice::from_ref(&run.found))
}

#[test]
fn a_sound_run_is_sound() {
    let verdict = judge(&sound());
    assert_eq!(verdict.violations, Vec::<String>::new());
    assert!(verdict.summary.contains("3 events, 3 deliveries, 4 arrivals, 0 lost"), "{}", verdict.summary);
    assert!(verdict.summary.contains("1 repeats, of 1 attempts"), "{}", verdict.summary);
}

#[test]
fn whatever_is_wrong_is_named() {
    type Harm = fn(&mut Run);
    let cases: [(&str, Harm); 23] = [
        ("has 0 × row", |run| run.found.rows[0].1.clear()),
        ("has 2 × row", |run| run.found.rows[1].1.push(quote())),
        ("0 × row with the id of the answer", |run| run.entries[2].answer = Some(json!({ "id": "q-2" }))),
        ("0 × contact.updated", |run| drop(run.found.events.remove(1))),
        ("2 × quote.created", |run| run.found.events.push(run.found.events[2].clone())),
        ("nobody asked for", |run| run.entries.truncate(2)),
        ("nobody caused contact.updated", |run| drop(run.entries.remove(1))),
        ("c-1 has events, but is not in the database", |run| run.found.rows[0].1.clear()),
        ("is not as its last event tells", |run| run.found.rows[0].1[0]["city"] = json!("Hobart")),
        ("the quotes go from 0 to 2", |run| run.found.rows[1].1[0]["quote_number"] = json!("QUO-0002")),
        ("has deliveries to [] instead of", |run| drop(run.found.deliveries.remove(0))),
        ("has deliveries to", |run| run.found.deliveries.push(run.found.deliveries[0].clone())),
        ("it is lost", |run| drop(run.noted.arrivals.remove(0))),
        ("is held after", |run| run.found.deliveries[0].0.status = DeliveryStatus::Held),
        ("arrived, but is not in the database", |run| run.noted.arrivals[0].delivery = Uuid::max()),
        ("has 1 attempts without an outcome, but 0 were", |run| run.abandoned.clear()),
        ("came again after attempt 1 had succeeded", |run| run.found.deliveries[1].1.insert(0, log(1, 204))),
        ("arrived as the attempts [1, 1]", |run| run.noted.arrivals[2].attempt = 1),
        ("instead of contact.created", |run| run.noted.arrivals[0].data = quote()),
        ("was acknowledged while nothing could be written", |run| run.entries[0].too_good = true),
        ("was refused 1 times, but it had been done", |run| {
            let entry = &mut run.entries[2];
            (entry.sent, entry.refused, entry.replayed) = (2, 1, true);
        }),
        ("was refused after 1 requests, and has 1 × row", |run| {
            let entry = &mut run.entries[2];
            (entry.refused, entry.answer) = (1, None);
        }),
        ("a wrong signature", |run| run.noted.refused.push("a wrong signature".to_owned())),
    ];
    for (wanted, harm) in cases {
        let mut run = sound();
        harm(&mut run);
        let violations = judge(&run).violations;
        assert!(violations.iter().any(|violation| violation.contains(wanted)), "{wanted}: {violations:#?}");
    }
}

/// What nobody was told of may be there or not, but not twice.
#[test]
fn an_unknown_outcome_may_be_either() {
    let mut run = sound();
    run.entries[2].answer = None;
    assert_eq!(judge(&run).violations, Vec::<String>::new());
    run.found.rows[1].1.clear();
    run.found.events.remove(2);
    run.found.deliveries.remove(2);
    run.noted.arrivals.pop();
    assert_eq!(judge(&run).violations, Vec::<String>::new());
    let mut run = sound();
    run.entries[2].answer = None;
    run.found.rows[1].1.push(json!({ "id": "q-2", "total": 7, "quote_number": "QUO-0002" }));
    assert!(judge(&run).violations.iter().any(|violation| violation.contains("not answered")));
}
