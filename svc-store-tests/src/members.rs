//! Members of tenants.

use serde_json::json;
use svc_core::accounts::actor::Actor;
use svc_core::accounts::audit;
use svc_core::accounts::members::{self, Member, MemberId};
use svc_core::accounts::sessions::Role;
use svc_core::error::{Error, StoreError};
use svc_core::values::{AnyObject, Email, TenantId, Timestamp};

use crate::Harness;

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

impl Harness {
    async fn add_member(&self, tenant: TenantId, address: &str, role: Role) -> Result<Member, Error> {
        let address = email(address);
        self.write((tenant, address, role), async |tx, (tenant, address, role)| {
            members::add(tx, *tenant, address, *role).await
        })
        .await
    }

    async fn members(&self, tenant: TenantId) -> Vec<Member> {
        self.read(tenant, async |tx, &tenant| members::list(tx, tenant).await).await.unwrap()
    }

    async fn memberships(&self, address: &str) -> Vec<Member> {
        let address = email(address);
        self.read(address, async |tx, address| members::of_email(tx, address).await).await.unwrap()
    }

    async fn set_role(&self, tenant: TenantId, id: MemberId, role: Role, actor: Actor) -> Result<Member, Error> {
        self.write((actor, tenant, id, role), async |tx, (actor, tenant, id, role)| {
            tx.act_as(actor.clone());
            members::set_role(tx, *tenant, *id, *role).await
        })
        .await
    }

    async fn remove_member(&self, tenant: TenantId, id: MemberId, actor: Actor) -> Result<Member, Error> {
        self.write((actor, tenant, id), async |tx, (actor, tenant, id)| {
            tx.act_as(actor.clone());
            members::remove(tx, *tenant, *id).await
        })
        .await
    }
}

pub(super) async fn members_of_a_tenant_are_listed(h: Harness) {
    let tenant = h.tenant().await;
    let mut added = Vec::new();
    // Bytes decide the order, in every language of the database.
    for address in ["bob@example.com", "a_d@example.com", "ada@example.com", "a.d@example.com"] {
        added.push(h.add_member(tenant, address, Role::Viewer).await.unwrap());
    }
    added.sort_by_key(|member| member.email.as_str().to_owned());
    assert_eq!(h.members(tenant).await, added);
    assert_eq!(
        added.iter().map(|member| member.email.as_str()).collect::<Vec<_>>(),
        ["a.d@example.com", "a_d@example.com", "ada@example.com", "bob@example.com"]
    );
    let id = added[1].id;
    assert_eq!(
        h.read((tenant, id), async |tx, &(tenant, id)| members::get(tx, tenant, id).await).await.unwrap(),
        added[1]
    );
    let two = h.read(tenant, async |tx, &tenant| Ok(tx.members(tenant, 2).await?)).await.unwrap();
    assert_eq!(two, added[..2]);
}

pub(super) async fn an_address_is_a_member_of_a_tenant_once(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.add_member(tenant, "Ada@Example.com", Role::Owner).await.unwrap();
    assert_eq!(member.email.as_str(), "ada@example.com");
    assert!(matches!(h.add_member(tenant, "ADA@example.com", Role::Viewer).await, Err(Error::NotAllowed(_))));
    let results =
        futures_util::future::join_all((0..5).map(|_| h.add_member(tenant, "bob@example.com", Role::Viewer))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let twice = h.write(member, async |tx, member| {
        let id = tx.env().id(member.created_at);
        let twice = Member { id, ..member.clone() };
        Ok(tx.insert_member(&twice).await?)
    });
    assert!(matches!(twice.await, Err(Error::Store(StoreError::Conflict { .. }))));
    let unknown = TenantId(uuid::Uuid::from_u128(7));
    assert_eq!(h.add_member(unknown, "ada@example.com", Role::Owner).await, Err(Error::UnknownTenant(unknown)));
}

pub(super) async fn the_memberships_of_an_address_are_found(h: Harness) {
    let tenants = [h.tenant().await, h.tenant().await, h.tenant().await];
    let mut ada = Vec::new();
    for (tenant, role) in tenants.into_iter().zip([Role::Owner, Role::Developer, Role::Viewer]) {
        ada.push(h.add_member(tenant, "ada@example.com", role).await.unwrap());
        h.add_member(tenant, "bob@example.com", Role::Owner).await.unwrap();
    }
    ada.sort_by_key(|member| member.tenant_id);
    assert_eq!(h.memberships("Ada@EXAMPLE.com").await, ada);
    assert_eq!(h.memberships("eve@example.com").await, []);
    h.remove_member(ada[1].tenant_id, ada[1].id, Actor::System).await.unwrap();
    assert_eq!(h.memberships("ada@example.com").await, [ada[0].clone(), ada[2].clone()]);
}

pub(super) async fn members_of_tenants_are_apart(h: Harness) {
    let (one, other) = (h.tenant().await, h.tenant().await);
    let member = h.add_member(one, "ada@example.com", Role::Owner).await.unwrap();
    let same_id = Member { tenant_id: other, role: Role::Viewer, ..member.clone() };
    let copy = same_id.clone();
    h.write(copy, async |tx, copy| Ok(tx.insert_member(copy).await?)).await.unwrap();
    h.set_role(other, member.id, Role::Developer, Actor::System).await.unwrap();
    assert_eq!(h.members(one).await, std::slice::from_ref(&member));
    assert_eq!(h.members(other).await, [Member { role: Role::Developer, ..same_id }]);
    h.remove_member(other, member.id, Actor::System).await.unwrap();
    assert_eq!(h.members(one).await, std::slice::from_ref(&member));
    let id = member.id;
    assert_eq!(
        h.read((other, id), async |tx, &(other, id)| members::get(tx, other, id).await).await,
        Err(Error::NotFound)
    );
    assert_eq!(h.set_role(other, id, Role::Viewer, Actor::System).await, Err(Error::NotFound));
    assert_eq!(h.remove_member(other, id, Actor::System).await, Err(Error::NotFound));
}

pub(super) async fn a_change_of_a_role_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.add_member(tenant, "ada@example.com", Role::Viewer).await.unwrap();
    for role in [Role::Owner, Role::Developer, Role::Viewer] {
        let changed = h.set_role(tenant, member.id, role, Actor::System).await.unwrap();
        assert_eq!(changed, Member { role, ..member.clone() });
        assert_eq!(h.members(tenant).await, [changed]);
    }
}

pub(super) async fn changes_of_members_are_audited(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.add_member(tenant, "ada@example.com", Role::Viewer).await.unwrap();
    let mut actions = Vec::new();
    for role in [Role::Developer, Role::Developer] {
        h.clock.advance(std::time::Duration::from_secs(1));
        h.set_role(tenant, member.id, role, Actor::Dashboard("bob@example.com".to_owned())).await.unwrap();
    }
    h.clock.advance(std::time::Duration::from_secs(1));
    h.remove_member(tenant, member.id, Actor::Cli("root".to_owned())).await.unwrap();
    let beginning = Timestamp::from_micros(0);
    for entry in h
        .read((tenant, beginning), async |tx, &(tenant, beginning)| audit::list(tx, tenant, beginning, 10).await)
        .await
        .unwrap()
    {
        if entry.object_kind == "member" {
            assert_eq!(entry.object_id, member.id.uuid());
            let role = |json: Option<AnyObject>| {
                json.map(|json| serde_json::from_str::<Member>(json.as_str()).unwrap().role.as_str())
            };
            actions.push(json!([entry.action, entry.actor, role(entry.before), role(entry.after)]));
        }
    }
    assert_eq!(
        actions,
        [
            json!(["delete", "cli:root", "developer", null]),
            json!(["update", "dashboard:bob@example.com", "viewer", "developer"]),
            json!(["create", "system", null, "viewer"]),
        ]
    );
}

pub(super) async fn people_keep_an_owner(h: Harness) {
    let tenant = h.tenant().await;
    let person = || Actor::Dashboard("ada@example.com".to_owned());
    let ada = h.add_member(tenant, "ada@example.com", Role::Owner).await.unwrap().id;
    let bob = h.add_member(tenant, "bob@example.com", Role::Owner).await.unwrap().id;
    let each_other = [h.remove_member(tenant, ada, person()), h.remove_member(tenant, bob, person())];
    let results = futures_util::future::join_all(each_other).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let last = h.members(tenant).await.remove(0).id;
    assert!(matches!(h.remove_member(tenant, last, person()).await, Err(Error::NotAllowed(_))));
    assert!(matches!(h.set_role(tenant, last, Role::Viewer, person()).await, Err(Error::NotAllowed(_))));
    h.set_role(tenant, last, Role::Owner, person()).await.unwrap();
    h.remove_member(tenant, last, Actor::Cli("root".to_owned())).await.unwrap();
    assert_eq!(h.members(tenant).await, []);
}
