//! Operational events: recorded in the transaction of the change, and published once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::keys::{self, KeyCreate, KeyId};
use svc_core::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::error::Error;
use svc_core::resources::Resource as _;
use svc_core::sandboxes;
use svc_core::store::DeliveryFilter;
use svc_core::values::{EventKind, TenantId, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus};
use svc_core::webhooks::engine::{AttemptResult, Batch, Policy, run_batch};
use svc_core::webhooks::events;
use svc_core::webhooks::operational;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::Harness;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Harness {
    async fn set_platform_webhook(&self, url: Option<&str>) -> Result<(), Error> {
        let url = url.map(|url| url.parse::<WebhookUrl>().unwrap());
        operational::set_webhook(&*self.store, url.as_ref()).await
    }

    async fn platform_webhook(&self) -> WebhookSubscription {
        let mut all = self.all::<WebhookSubscription>(PLATFORM_ACCOUNT).await;
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    async fn set_access(&self, tenant: TenantId, access: DeveloperAccess) -> Result<(), Error> {
        let write = self.write((tenant, access), async |tx, &(tenant, access)| {
            tenants::update(tx, tenant.0, |tenant| tenant.developer_access = access).await?;
            Ok(())
        });
        write.await
    }

    /// Suspends an account and approves it again.
    async fn approve(&self, tenant: TenantId) {
        for access in [DeveloperAccess::Suspended, DeveloperAccess::Approved] {
            self.set_access(tenant, access).await.unwrap();
        }
    }

    async fn recorded(&self) -> usize {
        self.read((), async |tx, ()| Ok(tx.operational_events(1_000).await?.len())).await.unwrap()
    }

    /// Publishes what was recorded, and returns the kind and the data of all events of the platform account.
    async fn published(&self) -> Vec<(EventKind, Value)> {
        operational::publish(&*self.store).await.unwrap();
        assert_eq!(self.recorded().await, 0);
        let events = self.events(PLATFORM_ACCOUNT).await;
        events.iter().map(|event| (event.kind, event.data.get().parse().unwrap())).collect()
    }

    async fn deliveries_of(&self, tenant: TenantId) -> Vec<Delivery> {
        self.read(tenant, async |tx, &tenant| Ok(tx.list_deliveries(tenant, &DeliveryFilter::default()).await?))
            .await
            .unwrap()
    }

    async fn key_for(&self, tenant: TenantId, expires_in: Duration) -> KeyId {
        let input = KeyCreate { name: Some("Zoë".to_owned()), expires_in: Some(expires_in), ..KeyCreate::default() };
        self.write((tenant, input), async |tx, (tenant, input)| keys::create(tx, *tenant, input.clone()).await)
            .await
            .unwrap()
            .key
            .id
    }

    /// Records an attempt at a new delivery of a tenant that ended with this status.
    async fn attempt(&self, tenant: TenantId, status: i32) -> Delivery {
        let emit = self.write(tenant, async |tx, &tenant| {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::JobCreated], &serde_json::json!({ "id": 1 })).await?;
            let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
            let mut delivery = tx.list_deliveries(tenant, &newest).await?.remove(0);
            delivery.claim(tx.env().id(now), now.checked_add(DAY).unwrap());
            tx.update_delivery(&delivery, None).await?;
            Ok(delivery)
        });
        let delivery = emit.await.unwrap();
        let log = AttemptLog {
            attempt: delivery.attempts,
            started_at: self.store.env().now(),
            duration_ms: 5,
            status,
            error: Some(format!("status: {status}")),
            cause: None,
            response_body: None,
            response_truncated: false,
            remote_addr: None,
        };
        let outcome = AttemptResult { delivery: delivery.clone(), log, retry_after: None };
        let batch = Arc::new(Batch::outcomes_only(tenant, vec![outcome]));
        let run = self.write(batch, async |tx, batch| run_batch(tx, &Policy::default(), batch).await.map(drop));
        run.await.unwrap();
        delivery
    }
}

fn kind(kind: OperationalKind) -> EventKind {
    kind.event_kind().unwrap()
}

pub(super) async fn nothing_is_recorded_without_a_platform_webhook(h: Harness) {
    h.set_platform_webhook(None).await.unwrap();
    let tenant = h.tenant().await;
    let key = h.key_for(tenant, DAY).await;
    h.approve(tenant).await;
    assert_eq!(operational::report_expiring_keys(&*h.store).await, Ok(0));
    assert_eq!((h.recorded().await, h.published().await), (0, Vec::new()));
    assert_eq!(h.read((), async |tx, ()| Ok(tx.tenant(PLATFORM_ACCOUNT).await?)).await, Ok(None));
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    assert_eq!(operational::report_expiring_keys(&*h.store).await, Ok(1), "it was not marked before");
    assert_eq!(h.published().await[0].1["id"], key.to_string());
}

pub(super) async fn the_platform_webhook_is_kept_at_its_url(h: Harness) {
    let url = |webhook: &WebhookSubscription| webhook.url.as_str().to_owned();
    let set: Vec<_> = join_all((0..5).map(|_| h.set_platform_webhook(Some("https://example.com/a")))).await;
    assert_eq!(set, vec![Ok(()); 5], "several nodes may start at once");
    let first = h.platform_webhook().await;
    assert_eq!((url(&first).as_str(), first.enabled, first.events.names()), ("https://example.com/a", true, vec!["*"]));
    h.set_platform_webhook(Some("https://example.com/b")).await.unwrap();
    let moved = h.platform_webhook().await;
    assert_eq!((url(&moved).as_str(), moved.id), ("https://example.com/b", first.id));
    assert_eq!(moved.secret.reveal(), first.secret.reveal());
    // Without a URL it is disabled, and with one enabled again.
    h.set_platform_webhook(None).await.unwrap();
    assert!(!h.platform_webhook().await.enabled);
    h.set_platform_webhook(Some("https://example.com/b")).await.unwrap();
    assert!(h.platform_webhook().await.enabled);
    // One that the service has paused stays paused until it is enabled, or gets another URL.
    let mut paused = h.platform_webhook().await;
    paused.pause(h.advance_clock(PLATFORM_ACCOUNT).await);
    paused.stopped_at = None;
    h.replace(PLATFORM_ACCOUNT, &paused).await;
    h.set_platform_webhook(Some("https://example.com/b")).await.unwrap();
    assert!(!h.platform_webhook().await.enabled);
    h.set_platform_webhook(Some("https://example.com/c")).await.unwrap();
    assert!(h.platform_webhook().await.enabled);
    let refused = h.set_platform_webhook(Some("https://127.0.0.1/")).await;
    assert!(matches!(refused, Err(Error::Validation(_))), "{refused:?}");
}

pub(super) async fn an_operational_event_is_published_once(h: Harness) {
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let tenants = [h.tenant().await, h.tenant().await];
    for tenant in tenants {
        h.approve(tenant).await;
        h.set_access(tenant, DeveloperAccess::Approved).await.unwrap();
        h.clock.advance(Duration::from_secs(1));
    }
    let failed = h
        .write(tenants, async |tx, &tenants| {
            let access = [DeveloperAccess::Suspended, DeveloperAccess::Approved];
            for access in access {
                tenants::update(tx, tenants[0].0, |tenant| tenant.developer_access = access).await?;
            }
            Err::<(), _>(Error::NotFound)
        })
        .await;
    assert_eq!((failed, h.recorded().await), (Err(Error::NotFound), 2), "a change that failed is not reported");
    let published = join_all((0..5).map(|_| operational::publish(&*h.store))).await;
    assert_eq!(published.into_iter().map(Result::unwrap).sum::<u64>(), 2);
    let published = h.published().await;
    let of: Vec<_> = published.iter().map(|(kind, data)| (*kind, data["account_id"].as_str().unwrap())).collect();
    let [first, second] = tenants.map(|tenant| tenant.to_string());
    let approved = kind(OperationalKind::AccountApproved);
    assert_eq!(of, [(approved, &*first), (approved, &*second)]);
    assert_eq!(published[0].1["approved_by"], "system");
    assert_eq!(h.deliveries_of(PLATFORM_ACCOUNT).await.len(), 2);
    assert!(h.events(tenants[0]).await.is_empty(), "the events belong to the platform account alone");
}

pub(super) async fn many_operational_events_are_published_in_their_order(h: Harness) {
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let tenant = h.tenant().await;
    for _ in 0..230 {
        h.approve(tenant).await;
    }
    let times: Vec<String> = h.published().await.iter().map(|(_, data)| data["occurred_at"].to_string()).collect();
    assert_eq!(times.len(), 230);
    assert!(times.is_sorted());
}

pub(super) async fn an_expiring_key_is_reported_once(h: Harness) {
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let tenant = h.tenant().await;
    let key = h.key_for(tenant, 8 * DAY).await;
    let revoked = h.key_for(tenant, 8 * DAY).await;
    h.key_for(tenant, 30 * DAY).await;
    h.write(revoked, async |tx, &revoked| keys::revoke(tx, revoked).await).await.unwrap();
    let report = || operational::report_expiring_keys(&*h.store);
    assert_eq!(report().await, Ok(0), "too early");
    h.clock.advance(DAY + Duration::from_secs(1));
    let reported = join_all((0..5).map(|_| report())).await;
    assert_eq!(reported.into_iter().map(Result::unwrap).sum::<u64>(), 1);
    h.clock.advance(8 * DAY);
    assert_eq!(report().await, Ok(0), "it has expired");
    let published = h.published().await;
    assert_eq!(published.len(), 1);
    let (of, data) = &published[0];
    assert_eq!(*of, kind(OperationalKind::KeyExpiring));
    assert_eq!((&data["id"], &data["name"]), (&key.to_string().into(), &"Zoë".into()));
    assert_eq!(data["account_id"], tenant.to_string());
}

pub(super) async fn a_pause_and_a_last_failure_are_reported(h: Harness) {
    let tenant = h.tenant().await;
    let endpoint = h.endpoint(tenant).await;
    h.attempt(tenant, 410).await;
    assert_eq!(h.recorded().await, 0);
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let mut subscription = h.row::<WebhookSubscription>(tenant, endpoint).await.unwrap();
    subscription.backoff_until = None;
    subscription.consecutive_failures = 9;
    let stored = subscription.clone();
    let set =
        h.write((tenant, stored), async |tx, (tenant, stored)| Ok(tx.update_delivery_outcome(*tenant, stored).await?));
    set.await.unwrap();
    let delivery = h.attempt(tenant, 410).await;
    let published = h.published().await;
    let kinds: Vec<_> = published.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [OperationalKind::DeliveryExhausted, OperationalKind::EndpointPaused].map(kind));
    let (exhausted, paused) = (&published[0].1, &published[1].1);
    let url = subscription.url.as_str();
    assert_eq!((&exhausted["id"], &exhausted["last_status"]), (&delivery.id.to_string().into(), &410.into()));
    assert_eq!((&exhausted["event"], &exhausted["url"]), (&"job.created".into(), &url.into()));
    assert_eq!((&paused["id"], &paused["url"]), (&endpoint.to_string().into(), &url.into()));
    assert_eq!((&paused["consecutive_failures"], &paused["account_id"]), (&10.into(), &tenant.to_string().into()));
    // What happens to the deliveries of the platform account itself is not reported, or it would never end.
    h.attempt(PLATFORM_ACCOUNT, 410).await;
    assert_eq!(h.recorded().await, 0);
}

pub(super) async fn what_happens_in_a_sandbox_is_not_reported(h: Harness) {
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let account = h.tenant().await;
    let create = h.write(account, async |tx, &account| sandboxes::create(tx, account).await);
    let sandbox = create.await.unwrap().sandbox.id;
    h.key_for(sandbox, DAY).await;
    h.endpoint(sandbox).await;
    for _ in 0..10 {
        h.attempt(sandbox, 410).await;
    }
    operational::report_expiring_keys(&*h.store).await.unwrap();
    assert_eq!(h.recorded().await, 0);
    // The access that it gets from its account is reported once, for the account.
    h.approve(account).await;
    let published = h.published().await;
    assert_eq!(published.len(), 1, "{published:?}");
    assert_eq!(published[0].1["account_id"], account.to_string());
}

pub(super) async fn events_of_a_paused_platform_webhook_are_held(h: Harness) {
    h.set_platform_webhook(Some("https://example.com")).await.unwrap();
    let mut paused = h.platform_webhook().await;
    paused.pause(h.advance_clock(PLATFORM_ACCOUNT).await);
    paused.stopped_at = None;
    let write = h.write(paused, async |tx, paused| {
        Ok(WebhookSubscription::repository(tx).update(PLATFORM_ACCOUNT, paused).await?)
    });
    write.await.unwrap();
    let tenant = h.tenant().await;
    h.approve(tenant).await;
    assert_eq!(h.published().await.len(), 1);
    let statuses: Vec<_> = h.deliveries_of(PLATFORM_ACCOUNT).await.iter().map(|delivery| delivery.status).collect();
    assert_eq!(statuses, [DeliveryStatus::Held]);
}
