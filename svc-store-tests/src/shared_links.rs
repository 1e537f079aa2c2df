//! Shared links: secret addresses without sign-in.

use serde_json::json;
use svc_core::accounts::audit;
use svc_core::accounts::shared_links::{self, SharedLink, SharedLinkPurpose};
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::error::Error;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::Harness;

const RECORD: Option<Uuid> = Some(Uuid::from_u128(7));
const OTHER: Option<Uuid> = Some(Uuid::from_u128(8));

impl Harness {
    pub(super) async fn share(&self, tenant: TenantId, purpose: SharedLinkPurpose, record: Option<Uuid>) -> SharedLink {
        self.share_or_renew(tenant, purpose, record, false).await
    }

    async fn renew(&self, tenant: TenantId, purpose: SharedLinkPurpose, record: Option<Uuid>) -> SharedLink {
        self.share_or_renew(tenant, purpose, record, true).await
    }

    async fn share_or_renew(
        &self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
        renews: bool,
    ) -> SharedLink {
        let input = (tenant, purpose, record, renews);
        let share = self.write(input, async |tx, &(tenant, purpose, record, renews)| {
            shared_links::share(tx, tenant, purpose, record, renews).await
        });
        share.await.unwrap()
    }

    async fn find_shared(&self, new: &SharedLink) -> Result<SharedLink, Error> {
        let secret = new.secret.clone();
        let found = self.read(secret, async |tx, secret| {
            Ok(shared_links::find(tx, secret.reveal(), SharedLinkPurpose::ALL).await?.0)
        });
        found.await
    }

    pub(super) async fn shared_link(
        &self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
    ) -> Option<SharedLink> {
        let found = self.read((tenant, purpose, record), async |tx, &(tenant, purpose, record)| {
            shared_links::get(tx, tenant, purpose, record).await
        });
        found.await.unwrap()
    }

    async fn revoke_shared(
        &self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
    ) -> Option<SharedLink> {
        let revoked = self.write((tenant, purpose, record), async |tx, &(tenant, purpose, record)| {
            shared_links::revoke(tx, tenant, purpose, record).await
        });
        revoked.await.unwrap()
    }
}

pub(super) async fn a_shared_link_is_found_by_its_secret(h: Harness) {
    let tenant = h.tenant().await;
    for (purpose, record) in
        [(SharedLinkPurpose::Invoice, RECORD), (SharedLinkPurpose::Quote, RECORD), (SharedLinkPurpose::Calendar, None)]
    {
        let new = h.share(tenant, purpose, record).await;
        assert_eq!((new.purpose, new.record_id, new.tenant_id), (purpose, record, tenant));
        assert_eq!(new.secret.reveal().len(), 43);
        assert_eq!(h.find_shared(&new).await, Ok(new.clone()));
        assert_eq!(h.shared_link(tenant, purpose, record).await, Some(new.clone()));
        // Whoever has the address of one thing cannot use it for another.
        let others: Vec<_> = SharedLinkPurpose::ALL.iter().copied().filter(|other| *other != purpose).collect();
        let found = h.read((new.secret.clone(), others), async |tx, (secret, others)| {
            Ok(shared_links::find(tx, secret.reveal(), others).await?.0)
        });
        assert_eq!(found.await, Err(Error::NotFound));
    }
    for wrong in ["", "x", "\0", "’"] {
        let found =
            h.read(wrong, async |tx, secret| Ok(shared_links::find(tx, secret, SharedLinkPurpose::ALL).await?.0));
        assert_eq!(found.await, Err(Error::NotFound), "{wrong:?}");
    }
}

pub(super) async fn a_renewed_shared_link_has_another_address(h: Harness) {
    let tenant = h.tenant().await;
    let old = h.share(tenant, SharedLinkPurpose::Calendar, None).await;
    assert_eq!(h.share(tenant, SharedLinkPurpose::Calendar, None).await, old, "it stays until it is renewed");
    let new = h.renew(tenant, SharedLinkPurpose::Calendar, None).await;
    assert_eq!(old.id, new.id);
    assert_ne!(old.secret.reveal(), new.secret.reveal());
    assert_eq!(h.find_shared(&old).await, Err(Error::NotFound));
    assert_eq!(h.find_shared(&new).await, Ok(new.clone()));
    assert_eq!(h.shared_link(tenant, SharedLinkPurpose::Calendar, None).await, Some(new));
}

pub(super) async fn of_concurrent_renewals_one_address_works(h: Harness) {
    let tenant = h.tenant().await;
    let made = (0..5).map(|_| h.renew(tenant, SharedLinkPurpose::Invoice, RECORD));
    let made = futures_util::future::join_all(made).await;
    let mut working = 0;
    for new in &made {
        working += usize::from(h.find_shared(new).await.is_ok());
    }
    assert_eq!(working, 1);
}

pub(super) async fn a_revoked_shared_link_is_gone(h: Harness) {
    let tenant = h.tenant().await;
    let new = h.share(tenant, SharedLinkPurpose::Quote, RECORD).await;
    assert_eq!(h.revoke_shared(tenant, SharedLinkPurpose::Quote, RECORD).await, Some(new.clone()));
    assert_eq!(h.find_shared(&new).await, Err(Error::NotFound));
    assert_eq!(h.shared_link(tenant, SharedLinkPurpose::Quote, RECORD).await, None);
    assert_eq!(h.revoke_shared(tenant, SharedLinkPurpose::Quote, RECORD).await, None, "there is none any more");
}

pub(super) async fn shared_links_are_apart(h: Harness) {
    let (one, other) = (h.tenant().await, h.tenant().await);
    let kept = [
        h.share(one, SharedLinkPurpose::Quote, OTHER).await,
        h.share(one, SharedLinkPurpose::Invoice, RECORD).await,
        h.share(one, SharedLinkPurpose::Calendar, None).await,
        h.share(other, SharedLinkPurpose::Quote, RECORD).await,
        h.share(other, SharedLinkPurpose::Calendar, None).await,
    ];
    let ended = h.share(one, SharedLinkPurpose::Quote, RECORD).await;
    h.revoke_shared(one, SharedLinkPurpose::Quote, RECORD).await;
    assert_eq!(h.find_shared(&ended).await, Err(Error::NotFound));
    for new in kept {
        assert_eq!(h.find_shared(&new).await, Ok(new.clone()));
        // The id alone ends nothing of another tenant.
        let foreign = if new.tenant_id == one { other } else { one };
        let delete =
            h.write((foreign, new.id), async |tx, &(tenant, id)| Ok(tx.delete_shared_link(tenant, id).await?));
        delete.await.unwrap();
        assert_eq!(h.find_shared(&new).await, Ok(new.clone()));
    }
}

pub(super) async fn the_links_of_a_suspended_tenant_show_nothing(h: Harness) {
    let tenant = h.tenant().await;
    for (access, is_available) in
        [(DeveloperAccess::Pending, true), (DeveloperAccess::Suspended, false), (DeveloperAccess::Approved, true)]
    {
        let changed = h.write((tenant, access), async |tx, &(tenant, access)| {
            tenants::update(tx, tenant.0, |tenant| tenant.developer_access = access).await
        });
        assert_eq!(shared_links::is_available(&changed.await.unwrap()), is_available, "{access}");
    }
}

pub(super) async fn changes_of_shared_links_are_audited(h: Harness) {
    let tenant = h.tenant().await;
    let mut secrets = Vec::new();
    for _ in 0..2 {
        secrets.push(h.renew(tenant, SharedLinkPurpose::Invoice, RECORD).await.secret);
        h.clock.advance(std::time::Duration::from_secs(1));
    }
    h.revoke_shared(tenant, SharedLinkPurpose::Invoice, RECORD).await;
    let since = Timestamp::from_micros(0);
    let log = h.read((tenant, since), async |tx, &(tenant, since)| audit::list(tx, tenant, since, 10).await);
    let log = log.await.unwrap();
    let entries = log.iter().filter(|entry| entry.object_kind == "shared_link");
    let entries: Vec<_> =
        entries.map(|entry| json!([entry.action, entry.before.is_some(), entry.after.is_some()])).collect();
    assert_eq!(
        entries,
        [json!(["revoke", true, false]), json!(["rotate", true, true]), json!(["create", false, true]),]
    );
    let text = format!("{log:?}");
    assert!(secrets.iter().all(|secret| !text.contains(secret.reveal())), "{text}");
}
