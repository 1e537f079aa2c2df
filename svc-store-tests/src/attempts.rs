//! The logs of attempts.

use svc_core::store::DeletedResponses;
use svc_core::values::{Id, Timestamp};
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog};

use crate::Harness;
use crate::deliveries::call;

pub(super) async fn attempts_are_stored(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let delivery = h.insert_delivery(tenant, to, |_| {}).await;
    let id = delivery.id;
    assert_eq!(call!(h.attempts(tenant, id, u32::MAX, 10)), []);
    let bare = |attempt| AttemptLog {
        attempt,
        started_at: Timestamp::from_micros(0),
        duration_ms: 0,
        status: 204,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    let full = AttemptLog {
        started_at: delivery.created_at,
        duration_ms: u32::MAX,
        status: -1,
        error: Some("blocked: ::1 is not public — “näh”".to_owned()),
        cause: Some(AttemptCause::NotPublic),
        response_body: Some(format!("{}\u{0}\r\n\"'\\", "aß漢🔧".repeat(1024))),
        response_truncated: true,
        remote_addr: Some("[2001:db8::1]:443".to_owned()),
        ..bare(1_000_000)
    };
    let empty = AttemptLog { status: 0, error: Some(String::new()), response_body: Some(String::new()), ..bare(2) };
    // A crash leaves a gap in the numbers, and attempts may be stored out of order.
    for log in [&full, &bare(1), &empty] {
        let log = log.clone();
        let write =
            h.write((tenant, id, log), async |tx, (tenant, id, log)| Ok(tx.insert_attempt(*tenant, *id, log).await?));
        write.await.unwrap();
    }
    assert_eq!(call!(h.attempts(tenant, id, u32::MAX, 10)), [full.clone(), empty.clone(), bare(1)]);
    assert_eq!(call!(h.attempts(tenant, id, u32::MAX, 2)), [full, empty.clone()], "the newest");
    assert_eq!(call!(h.attempts(tenant, id, 1_000_000, 10)), [empty, bare(1)], "below a number");
    assert_eq!(call!(h.attempts(tenant, id, 2, 1)), [bare(1)]);
    assert_eq!(call!(h.attempts(tenant, id, 1, 10)), []);
    let bystander = h.insert_delivery(tenant, to, |_| {}).await.id;
    assert_eq!(call!(h.attempts(tenant, bystander, u32::MAX, 10)), []);
}

pub(super) async fn response_bodies_are_deleted_in_the_order_of_events_or_of_one(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let mut deliveries = Vec::new();
    for endpoint in [to, to, elsewhere, to, to] {
        let id = h.insert_delivery(tenant, endpoint, |_| {}).await.id;
        for attempt in [1, 2] {
            let log = AttemptLog {
                attempt,
                started_at: Timestamp::from_micros(0),
                duration_ms: 0,
                status: 500,
                error: None,
                cause: None,
                response_body: (attempt == 2).then(|| "body".to_owned()),
                response_truncated: false,
                remote_addr: None,
            };
            let write = h.write((tenant, id, log), async |tx, (tenant, id, log)| {
                Ok(tx.insert_attempt(*tenant, *id, log).await?)
            });
            write.await.unwrap();
        }
        deliveries.push(id);
    }
    let bodies = async || {
        let mut kept = Vec::new();
        for id in deliveries.clone() {
            let mut log = call!(h.attempts(tenant, id, u32::MAX, 10));
            log.reverse();
            assert!(!log[0].response_truncated, "without a body nothing was deleted");
            assert_eq!(log[1].response_truncated, log[1].response_body.is_none());
            kept.push(log[1].response_body.is_some());
        }
        kept
    };
    let deleted = |responses, last: usize| DeletedResponses { responses, last: Some(deliveries[last]) };
    let none = DeletedResponses { responses: 0, last: None };
    let (first, third, last) = (deliveries[0], deliveries[3], deliveries[4]);
    assert_eq!(call!(h.delete_responses(other, to, Id::nil(), 9)), none);
    assert_eq!(call!(h.delete_responses(tenant, to, first, 2)), deleted(2, 3));
    assert_eq!(bodies().await, [true, false, true, false, true]);
    assert_eq!(call!(h.delete_responses(tenant, to, first, 2)), deleted(0, 3), "they are deleted once");
    assert_eq!(call!(h.delete_responses(tenant, to, third, 2)), deleted(1, 4));
    assert_eq!(call!(h.delete_responses(tenant, to, last, 2)), none);
    assert_eq!(bodies().await, [true, false, true, false, false]);
    let event = call!(h.delivery(tenant, deliveries[2])).unwrap().event_id;
    assert_eq!(call!(h.delete_responses_to(other, event)), 0);
    assert_eq!(call!(h.delete_responses_to(tenant, event)), 1);
    assert_eq!(bodies().await, [true, false, false, false, false], "those to one event alone");
    assert_eq!(call!(h.delete_responses_to(tenant, event)), 0);
}
