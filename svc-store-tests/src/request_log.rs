//! The request log: what it keeps, for whom and for how long.

use std::time::Duration;

use svc_core::input::Input as _;
use svc_core::requests::{self, ApiRequest, MAX_AGE, MAX_REQUESTS, RequestFilter};
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::WrittenEvents;
use uuid::Uuid;

use crate::Harness;

impl Harness {
    /// Returns a request that arrives now, with no optional field.
    fn request(&self, tenant: TenantId) -> ApiRequest {
        let started_at = self.store.env().now();
        ApiRequest {
            id: self.store.env().id(started_at),
            tenant_id: tenant,
            request_id: "req-1".to_owned(),
            key_id: Uuid::from_u128(7).into(),
            method: "GET".to_owned(),
            path: "/api/v1/contacts".to_owned(),
            query: None,
            status: 200,
            code: None,
            failing_fields: None,
            started_at,
            duration_us: 1_500,
            events: 0,
            first_event_id: None,
            last_event_id: None,
        }
    }

    /// Adds requests, each a millisecond after the one before.
    pub(super) async fn log_requests(&self, tenant: TenantId, count: u32) -> Vec<ApiRequest> {
        let mut requests = Vec::new();
        for _ in 0..count {
            requests.push(self.request(tenant));
            self.clock.advance(Duration::from_millis(1));
        }
        requests::record(&*self.store, &requests).await.unwrap();
        requests.reverse();
        requests
    }

    async fn requests(&self, tenant: TenantId, filter: RequestFilter) -> Vec<ApiRequest> {
        let list = self.read((tenant, filter), async |tx, (tenant, filter)| requests::list(tx, *tenant, filter).await);
        list.await.unwrap()
    }

    /// Returns how many requests of a tenant are stored.
    async fn stored_requests(&self, tenant: TenantId) -> usize {
        let beginning = Timestamp::from_micros(0);
        let all = self.read((tenant, beginning), async |tx, &(tenant, beginning)| {
            Ok(tx.logged_requests(tenant, beginning, 10_000).await?)
        });
        all.await.unwrap().len()
    }
}

pub(super) async fn every_field_of_a_request_is_stored(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let empty = h.request(tenant);
    h.clock.advance(Duration::from_millis(1));
    let full = ApiRequest {
        query: Some("status=paid&number=***".to_owned()),
        status: 400,
        code: Some("validation_failed".to_owned()),
        failing_fields: Some("number too_long".to_owned()),
        duration_us: 90 * 60 * 1_000_000,
        events: 2,
        first_event_id: Some(Uuid::from_u128(1).into()),
        last_event_id: Some(Uuid::from_u128(2).into()),
        ..h.request(tenant)
    };
    requests::record(&*h.store, &[empty.clone(), full.clone()]).await.unwrap();
    assert_eq!(h.requests(tenant, RequestFilter::default()).await, [full, empty], "newest first");
    assert_eq!(h.requests(other, RequestFilter::default()).await, [], "another tenant has none");
}

pub(super) async fn a_tenant_keeps_its_newest_requests(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let others = h.log_requests(other, 3).await;
    let requests = h.log_requests(tenant, MAX_REQUESTS + 450).await;
    assert_eq!(h.requests(tenant, RequestFilter::default()).await, requests[..MAX_REQUESTS as usize]);
    assert_eq!(h.stored_requests(tenant).await, MAX_REQUESTS as usize, "the last one deletes what is too much");
    assert_eq!(h.requests(other, RequestFilter::default()).await, others);
}

pub(super) async fn requests_expire(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.log_requests(other, 300).await;
    h.log_requests(tenant, 2).await;
    h.clock.advance(MAX_AGE - Duration::from_millis(3));
    let new = h.log_requests(tenant, 1).await;
    for left in [3, 2] {
        assert_eq!(h.requests(tenant, RequestFilter::default()).await.len(), left, "older than a day");
        h.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(h.requests(tenant, RequestFilter::default()).await, new);
    assert_eq!(h.stored_requests(tenant).await, 3);
    assert_eq!(requests::delete_expired(&*h.store).await, Ok(302));
    assert_eq!(requests::delete_expired(&*h.store).await, Ok(0));
    assert_eq!((h.stored_requests(tenant).await, h.stored_requests(other).await), (1, 0));
}

pub(super) async fn a_request_names_the_events_it_wrote(h: Harness) {
    let tenant = h.tenant().await;
    h.contact(tenant, "before@example.com").await;
    let write = h.write(tenant, async |tx, &tenant| {
        assert_eq!(tx.written_events(), WrittenEvents::default());
        for email in ["ada", "grace"] {
            let body = format!(r#"{{ "email": "{email}@example.com" }}"#);
            crud::create::<Contact>(tx, tenant, ContactCreate::from_body(body.as_bytes())?).await?;
        }
        Ok(tx.written_events())
    });
    let written = write.await.unwrap();
    h.contact(tenant, "after@example.com").await;
    let all = h.events(tenant).await;
    assert_eq!((written.count, written.first, written.last), (2, Some(all[1].id), Some(all[2].id)));

    let request = ApiRequest {
        events: written.count,
        first_event_id: written.first,
        last_event_id: written.last,
        ..h.request(tenant)
    };
    requests::record(&*h.store, &[h.request(tenant), request.clone()]).await.unwrap();
    let logged = request.clone();
    let events = h.read(logged, async |tx, logged| requests::events(tx, logged, 10).await);
    let events: Vec<_> = events.await.unwrap().into_iter().map(|event| event.id).collect();
    assert_eq!(events, [all[1].id, all[2].id]);
    for (position, event) in all.iter().enumerate() {
        let filter = RequestFilter { event_id: Some(event.id), ..RequestFilter::default() };
        let want = if matches!(position, 1 | 2) { vec![request.clone()] } else { Vec::new() };
        assert_eq!(h.requests(tenant, filter).await, want, "event {position}");
    }
}

pub(super) async fn requests_are_filtered(h: Harness) {
    let tenant = h.tenant().await;
    let old = h.log_requests(tenant, 1).await.remove(0);
    let key_id = Uuid::from_u128(8).into();
    let new = ApiRequest {
        request_id: "req-2".to_owned(),
        key_id,
        method: "POST".to_owned(),
        path: "/api/v1/invoices".to_owned(),
        status: 422,
        ..h.request(tenant)
    };
    requests::record(&*h.store, std::slice::from_ref(&new)).await.unwrap();
    let none = RequestFilter::default;
    let filters = [
        RequestFilter { request_id: Some("req-2".to_owned()), ..none() },
        RequestFilter { key_id: Some(key_id), ..none() },
        RequestFilter { method: Some("post".to_owned()), ..none() },
        RequestFilter { path: Some("invoices".to_owned()), ..none() },
        RequestFilter { status: Some(400..=499), ..none() },
        RequestFilter { since: Some(new.started_at), ..none() },
    ];
    for filter in filters {
        assert_eq!(h.requests(tenant, filter.clone()).await, std::slice::from_ref(&new), "{filter:?}");
    }
    let until = RequestFilter { until: Some(new.started_at), ..none() };
    assert_eq!(h.requests(tenant, until).await, [old]);
}
