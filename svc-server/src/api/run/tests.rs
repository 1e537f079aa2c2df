//! The memory that reads of events and attempts reserve.

use serde_json::{Value, json};
use svc_core::Svc;
use svc_core::env::{Env, ManualClock, SystemEntropy};
use svc_core::platform::operations::{self, Records};
use svc_core::prelude::*;
use svc_core::store::DeliveryFilter;
use svc_core::store::memory::MemoryStore;
use svc_core::values::EventKinds;
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId};
use svc_core::webhooks::events::{EventId, MAX_DATA};

use super::*;
use crate::kernel::response_memory::RECORD;

/// The body of a response that is stored with an attempt, in bytes.
pub(crate) const RESPONSE: usize = 16 * 1024;

/// An account with the largest events, and a delivery with the largest attempts.
pub(crate) struct Largest {
    pub(crate) svc: Svc,
    pub(crate) tenant: TenantId,
    pub(crate) event: EventId,
    pub(crate) delivery: DeliveryId,
    pub(crate) webhook: SubscriptionId,
}

impl Largest {
    /// The size of the data of each event. That of two is a little less than one read returns, so three are read.
    pub(crate) const EVENT: usize = MAX_DATA - 1;

    pub(crate) async fn new() -> Self {
        let clock = ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap());
        let mut env = Env::new(clock, SystemEntropy);
        env.event_kinds.register("order.shipped", json!({ "examples": [{ "id": "A-17" }] })).unwrap();
        let svc = Svc::new(MemoryStore::new(env));
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let account = svc.account(tenant);
        let url = WebhookUrl::parse("https://example.com/hook").unwrap();
        let webhook = account.webhooks().create(WebhookCreate::new(url, EventSet::All)).await.unwrap().id;
        let data = |length: usize| json!({ "id": "A-17", "text": "<".repeat(length) });
        let data = data(Self::EVENT - data(0).to_string().len());
        assert_eq!(data.to_string().len(), Self::EVENT);
        for _ in 0..4 {
            account.events().emit("order.shipped".parse().unwrap(), &data).await.unwrap();
        }
        let delivery = account.deliveries().list(DeliveryFilter::default()).await.unwrap().remove(0);
        let insert = svc.store().write("test", (tenant, delivery.id), async |tx, &(tenant, delivery)| {
            for attempt in 1..=60 {
                let log = AttemptLog {
                    attempt,
                    started_at: tx.env().now(),
                    duration_ms: 5,
                    status: 500,
                    error: Some("status: 500 Internal Server Error".to_owned()),
                    // Control characters take most room in JSON.
                    cause: None,
                    response_body: Some("\u{1}".repeat(RESPONSE)),
                    response_truncated: true,
                    remote_addr: None,
                };
                tx.insert_attempt(tenant, delivery, &log).await?;
            }
            Ok(())
        });
        insert.await.unwrap();
        Self { svc, tenant, event: delivery.event_id, delivery: delivery.id, webhook }
    }
}

/// A response is made of what was read, and its buffer doubles when it is full.
#[tokio::test]
async fn the_memory_of_a_read_is_enough_for_the_largest_events_and_attempts() {
    let largest = Largest::new().await;
    let (event, delivery) = (largest.event.to_string(), largest.delivery.to_string());
    let attempts = 20 * RESPONSE;
    let read = [
        (operations::LIST_EVENTS.id, None, 3 * Largest::EVENT),
        (operations::GET_EVENT.id, Some(&*event), Largest::EVENT),
        (operations::GET_DELIVERY.id, Some(&*delivery), Largest::EVENT + attempts),
        (operations::LIST_DELIVERY_ATTEMPTS.id, Some(&*delivery), attempts),
    ];
    let of_audit_log = (operations::LIST_AUDIT_LOG.id, None, 3 * Largest::EVENT);
    let kinds = EventKinds::default();
    for (all, read) in
        [(operations::extensions(), read.to_vec()), (operations::platform(), [&read[..], &[of_audit_log]].concat())]
    {
        for (id, record, read) in read {
            let operation = all.iter().find(|operation| operation.id == id).unwrap_or_else(|| panic!("{id}"));
            let request = Request { query: "", body: &[], event_kinds: &kinds };
            let call = OperationCall::parse(*operation, record, request).ok().unwrap();
            let reserved = call.parsed.memory as usize * RECORD;
            let call = (call, largest.tenant);
            let response =
                largest.svc.store().read("test", call, async |tx, (call, tenant)| call.run(tx, *tenant).await);
            let body = response.await.unwrap().body;
            assert!(body.len() > read, "{id} returns {} bytes of {read}", body.len());
            let needed = read + 2 * body.len();
            assert!(needed <= reserved, "{id} needs {needed} bytes and has {reserved}");
            if record.is_none() {
                let page: Value = serde_json::from_slice(&body).unwrap();
                assert!(page["data"].as_array().unwrap().len() >= 3, "{id}");
            }
        }
    }
}

/// A subscription has up to 220 KiB of certificates and headers, which are read with it.
#[test]
fn a_list_of_webhooks_takes_memory_for_their_certificates() {
    let kinds = EventKinds::default();
    for (all, id, needed) in [
        (operations::public(), "listWebhooks", 40),
        (operations::public(), "getWebhook", 4),
        (operations::platform(), "listWebhooks", 40),
        (operations::public(), "listContacts", 10),
    ] {
        let operation = all.iter().find(|operation| operation.id == id).unwrap();
        let record = Uuid::nil().to_string();
        let is_list = id.starts_with("list");
        let request = Request { query: if is_list { "limit=10" } else { "" }, body: &[], event_kinds: &kinds };
        let call = OperationCall::parse(*operation, (!is_list).then_some(&*record), request).ok().unwrap();
        assert_eq!(call.parsed.memory, needed, "{id}");
    }
}

/// The platform API shows more of an invoice than what its version names, so its ETag is that of all that it shows.
#[tokio::test]
async fn an_etag_is_that_of_what_is_shown() {
    let svc = Svc::new(MemoryStore::new(Env::new(
        ManualClock::at(Timestamp::parse("2026-03-14T15:09:26Z").unwrap()),
        SystemEntropy,
    )));
    let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
    let invoice = svc.account(tenant).invoices().create(InvoiceCreate::new("50".parse().unwrap())).await.unwrap();
    let get = async |operation: &'static dyn AnyOperation| {
        let (id, event_kinds) = (invoice.id.to_string(), EventKinds::default());
        let request = Request { query: "", body: &[], event_kinds: &event_kinds };
        let call = OperationCall::parse(operation, Some(&id), request).ok().unwrap();
        let read = svc.store().read("test", (call, tenant), async |tx, (call, tenant)| call.run(tx, *tenant).await);
        read.await.unwrap()
    };
    let [public, platform] = [get(&Records::<Invoice>::GET).await, get(&operations::GET_INVOICE).await];
    assert_eq!(public.etag, Some(version_etag((invoice.id.uuid(), invoice.updated_at))));
    assert_eq!(platform.etag, Some(crate::kernel::response::etag(&platform.body)));
}
