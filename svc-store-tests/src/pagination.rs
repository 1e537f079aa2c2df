//! Pagination as clients use it: a record that exists throughout is returned exactly once.

use serde_json::json;
use svc_core::error::Error;
use svc_core::input::FromJson as _;
use svc_core::input::json::Json;
use svc_core::pages::{Limit, ListParams, Page, SentCursor, Since};
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::resources::quotes::{Quote, QuoteFilter, QuoteStatus};
use svc_core::resources::{Filter, NoFilter, Resource, crud};
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::samples::Sample;
use crate::{Harness, every_resource};

/// An iteration over the pages of a list.
struct Pages<'h, R: Resource> {
    h: &'h Harness,
    tenant: TenantId,
    limit: u32,
    since: Option<Timestamp>,
    filter: R::Filter,
    cursor: Option<Uuid>,
}

impl<'h, R: Resource> Pages<'h, R> {
    fn new(h: &'h Harness, tenant: TenantId, limit: u32) -> Self {
        Self { h, tenant, limit, since: None, filter: R::Filter::none(), cursor: None }
    }

    /// Returns the page at the cursor, without moving on.
    async fn peek(&self) -> Result<Page<R>, Error> {
        let sent = |cursor: Uuid| SentCursor::from_json(Json::String(cursor.to_string())).unwrap();
        let (limit, cursor, since) = (Limit::new(self.limit), self.cursor.map(sent), self.since.map(Since));
        let (tenant, filter) = (self.tenant, self.filter.clone());
        self.h
            .read((limit, cursor, since, tenant, filter), async |tx, (limit, cursor, since, tenant, filter)| {
                let params = ListParams { limit: *limit, cursor: *cursor, updated_since: *since };
                crud::list::<R>(tx, *tenant, &params, filter).await
            })
            .await
    }

    async fn next(&mut self) -> Vec<R> {
        let page = self.peek().await.unwrap();
        assert!(page.data.len() <= self.limit as usize);
        assert!(page.next_cursor.is_none() || page.data.len() == self.limit as usize, "only the last page is short");
        assert!(!page.data.is_empty() || self.cursor.is_none(), "a cursor leads to at least one record");
        self.cursor = page.next_cursor;
        page.data
    }

    async fn collect(&mut self) -> Vec<R> {
        let mut rows = self.next().await;
        while self.cursor.is_some() {
            rows.extend(self.next().await);
            assert!(rows.len() < 1_000, "the pages never end");
        }
        rows
    }
}

fn ids<R: Resource>(rows: &[R]) -> Vec<Id<R>> {
    rows.iter().map(Resource::id).collect()
}

pub(super) async fn every_record_is_returned_once(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId) {
        assert_eq!(Pages::<R>::new(h, tenant, 1).collect().await, [], "an empty list has one empty page");
        let mut rows = Vec::new();
        for _ in 0..12 {
            rows.push(h.insert(tenant, R::bare).await);
        }
        for limit in [1, 5, 6, 11, 12, 13, 200] {
            let mut changes = Pages::<R> { since: Some(rows[0].updated_at()), ..Pages::new(h, tenant, limit) };
            assert_eq!(changes.collect().await, rows, "{} by change, {limit} a page", R::COLLECTION);
            let mut newest = Pages::<R>::new(h, tenant, limit).collect().await;
            newest.reverse();
            assert_eq!(newest, rows, "{}, {limit} a page", R::COLLECTION);
        }
    }
    // The clock stands still and then goes back, but no two records may have the same time.
    let tenant = h.tenant().await;
    h.clock.set(Timestamp::from_micros(0));
    every_resource!(check(&h, tenant));
}

pub(super) async fn a_filtered_list_returns_every_match_once(h: Harness) {
    let tenant = h.tenant().await;
    let mut sent = Vec::new();
    for at in 0..20 {
        let status = if at % 3 == 0 { QuoteStatus::Sent } else { QuoteStatus::Draft };
        let quote = h.insert(tenant, move |new| Quote { status, ..Quote::bare(new) }).await;
        if status == QuoteStatus::Sent {
            sent.push(quote);
        }
    }
    let filter = QuoteFilter { status: Some(QuoteStatus::Sent) };
    for limit in [1, 3, 7] {
        let mut pages = Pages::<Quote> { filter: filter.clone(), ..Pages::new(&h, tenant, limit) };
        let mut newest = pages.collect().await;
        newest.reverse();
        assert_eq!(newest, sent, "{limit} a page");
        let since = Some(sent[2].updated_at());
        let mut pages = Pages::<Quote> { filter: filter.clone(), since, ..Pages::new(&h, tenant, limit) };
        assert_eq!(pages.collect().await, sent[2..], "{limit} a page");
    }
}

pub(super) async fn records_may_be_created_and_deleted_between_pages(h: Harness) {
    let tenant = h.tenant().await;
    let mut rows = Vec::new();
    for at in 0..12 {
        rows.push(h.contact(tenant, &format!("c{at}@example.com")).await.id);
    }
    rows.reverse();
    let mut pages = Pages::<Contact>::new(&h, tenant, 5);
    let mut seen = ids(&pages.next().await);
    h.contact(tenant, "late@example.com").await;
    h.delete::<Contact>(tenant, rows[4]).await.unwrap();
    h.delete::<Contact>(tenant, rows[6]).await.unwrap();
    h.update::<Contact>(tenant, rows[8], json!({ "city": "Perth" })).await.unwrap();
    pages.limit = 3;
    seen.extend(ids(&pages.collect().await));
    rows.remove(6);
    assert_eq!(seen, rows, "creating and deleting other records has no effect");
}

pub(super) async fn a_record_that_changes_between_pages_is_returned_again(h: Harness) {
    let tenant = h.tenant().await;
    let mut rows = Vec::new();
    for at in 0..5 {
        rows.push(h.contact(tenant, &format!("c{at}@example.com")).await);
    }
    let since = Some(rows[0].updated_at);
    let mut pages = Pages::<Contact> { since, ..Pages::new(&h, tenant, 2) };
    assert_eq!(pages.next().await, rows[..2]);
    let changed: Contact = h.update(tenant, rows[0].id, json!({ "city": "Perth" })).await.unwrap();
    let unseen: Contact = h.update(tenant, rows[3].id, json!({ "city": "Hobart" })).await.unwrap();
    let created = h.contact(tenant, "late@example.com").await;
    h.delete::<Contact>(tenant, rows[4].id).await.unwrap();
    let rest = pages.collect().await;
    assert_eq!(rest, [rows[2].clone(), changed, unseen, created.clone()]);
    // A client can also continue from the last change that it saw, without a cursor.
    let since = Some(created.updated_at);
    let filter = ContactFilter { email: None, include_deleted: Some(true) };
    let later = Pages::<Contact> { since, filter, ..Pages::new(&h, tenant, 50) }.collect().await;
    assert_eq!(ids(&later), [created.id, rows[4].id]);
    assert_eq!(later[1].deleted_at, Some(later[1].updated_at));
}

pub(super) async fn a_cursor_is_valid_for_its_own_list_only(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    for tenant in [tenant, other] {
        for _ in 0..3 {
            h.insert(tenant, Quote::bare).await;
            h.insert(tenant, WebhookSubscription::bare).await;
        }
    }
    let mut pages = Pages::<Quote>::new(&h, tenant, 1);
    let second = pages.next().await.len();
    assert_eq!((second, pages.peek().await.unwrap().data.len()), (1, 1));
    let cursor = pages.cursor;
    let refused = |page: Result<Page<Quote>, Error>| assert_eq!(page, Err(Error::InvalidCursor));
    refused(Pages { cursor, ..Pages::new(&h, other, 1) }.peek().await);
    let filter = QuoteFilter { status: Some(QuoteStatus::Draft) };
    refused(Pages { cursor, filter, ..Pages::new(&h, tenant, 1) }.peek().await);
    refused(Pages { cursor, since: Some(Timestamp::from_micros(0)), ..Pages::new(&h, tenant, 1) }.peek().await);
    refused(Pages { cursor: Some(Uuid::nil()), ..Pages::new(&h, tenant, 1) }.peek().await);
    let subscriptions = Pages::<WebhookSubscription> { cursor, filter: NoFilter {}, ..Pages::new(&h, tenant, 1) };
    assert_eq!(subscriptions.peek().await, Err(Error::InvalidCursor));
    // The key is the same in every transaction, also in one that writes.
    let sent = SentCursor::from_json(Json::String(cursor.unwrap().to_string())).unwrap();
    let page = h
        .write((tenant, sent), async |tx, &(tenant, sent)| {
            let params = ListParams { limit: None, cursor: Some(sent), updated_since: None };
            crud::list::<Quote>(tx, tenant, &params, &QuoteFilter::none()).await
        })
        .await;
    assert_eq!(page.unwrap().data.len(), 2);
}
