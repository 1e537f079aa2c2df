//! Links and sessions of the dashboard.

use std::time::Duration;

use svc_core::accounts::dashboard_links::{self, DashboardLinkCreate, NewDashboardLink};
use svc_core::accounts::members::{self, Member};
use svc_core::accounts::sessions::{self, NewSession, Role, Session, SessionId};
use svc_core::error::Error;
use svc_core::values::{Email, TenantId};

use crate::Harness;

const MINUTE: Duration = Duration::from_secs(60);

impl Harness {
    pub(super) async fn link(&self, input: DashboardLinkCreate) -> NewDashboardLink {
        self.write(input, async |tx, input| dashboard_links::create(tx, input.clone()).await).await.unwrap()
    }

    pub(super) async fn sign_in(&self, link: &NewDashboardLink) -> Result<NewSession, Error> {
        self.sign_in_with(link, false).await
    }

    async fn sign_in_with(&self, link: &NewDashboardLink, remembers: bool) -> Result<NewSession, Error> {
        let input = (link.token.clone(), remembers);
        let signed_in = self.write(input, async |tx, (token, remembers)| {
            dashboard_links::sign_in(tx, token.reveal(), *remembers).await
        });
        signed_in.await
    }

    pub(super) async fn session(&self, new: &NewSession) -> Option<Session> {
        let token = new.token.clone();
        self.read(token, async |tx, token| sessions::find(tx, token.reveal()).await).await.unwrap()
    }

    async fn sessions(&self, tenant: Option<TenantId>) -> Vec<SessionId> {
        let listed = self.read(tenant, async |tx, &tenant| sessions::list(tx, tenant).await).await.unwrap();
        listed.iter().map(|session| session.id).collect()
    }

    async fn use_session(&self, id: SessionId) {
        self.write(id, async |tx, &id| sessions::record_use(tx, id).await).await.unwrap();
    }

    async fn delete_expired_sign_ins(&self, limit: u32) -> u64 {
        let delete = self.write(limit, async |tx, &limit| {
            let now = tx.env().now();
            Ok(tx.delete_expired_sign_ins(now, limit).await?)
        });
        delete.await.unwrap()
    }
}

pub(super) async fn a_link_signs_in_once(h: Harness) {
    let tenant = h.tenant().await;
    let link = h.link(DashboardLinkCreate::to(tenant, Role::Developer).identity("zoë@example.com")).await;
    let new = h.sign_in(&link).await.unwrap();
    assert!(matches!(h.sign_in(&link).await, Err(Error::NotAllowed(_))));
    let session = h.session(&new).await.unwrap();
    assert_eq!(session, new.session);
    assert_eq!((session.account(), session.identity.as_str()), (Some((tenant, Role::Developer)), "zoë@example.com"));
}

pub(super) async fn of_concurrent_sign_ins_one_succeeds(h: Harness) {
    let tenant = h.tenant().await;
    let link = h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await;
    let results = futures_util::future::join_all((0..5).map(|_| h.sign_in(&link))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert_eq!(h.sessions(Some(tenant)).await.len(), 1);
}

pub(super) async fn a_locked_session_is_changed_by_nobody_else(h: Harness) {
    let new = h.sign_in(&h.link(DashboardLinkCreate::for_operator()).await).await.unwrap();
    let tenants = [h.tenant().await, h.tenant().await];
    // Each shows the other tenant than the one before it.
    let changes = (0..15).map(|_| {
        h.write((new.session.id, tenants), async |tx, &(id, tenants)| {
            let session = tx.lock_session(id).await?.ok_or(Error::NotFound)?;
            let next = if session.viewed_tenant_id == Some(tenants[0]) { tenants[1] } else { tenants[0] };
            Ok(tx.update_session(&Session { viewed_tenant_id: Some(next), ..session }).await?)
        })
    });
    assert!(futures_util::future::join_all(changes).await.into_iter().all(|changed| changed == Ok(())));
    assert_eq!(h.session(&new).await.unwrap().viewed_tenant_id, Some(tenants[0]));
    assert_eq!(h.write(SessionId::nil(), async |tx, &id| Ok(tx.lock_session(id).await?)).await, Ok(None));
}

pub(super) async fn a_link_works_for_ten_minutes(h: Harness) {
    let tenant = h.tenant().await;
    let [in_time, late] = [
        h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await,
        h.link(DashboardLinkCreate::for_operator()).await,
    ];
    h.clock.advance(MINUTE * 10 - Duration::from_micros(1));
    assert!(h.sign_in(&in_time).await.is_ok());
    h.clock.advance(Duration::from_micros(1));
    assert!(matches!(h.sign_in(&late).await, Err(Error::NotAllowed(_))));
}

pub(super) async fn a_session_ends_after_twelve_hours_or_an_idle_one(h: Harness) {
    let tenant = h.tenant().await;
    let used = h.sign_in(&h.link(DashboardLinkCreate::to(tenant, Role::Owner)).await).await.unwrap();
    let idle = h.sign_in(&h.link(DashboardLinkCreate::to(tenant, Role::Owner)).await).await.unwrap();
    assert_eq!(h.sessions(Some(tenant)).await.len(), 2);
    for half_hours in 1..24 {
        h.clock.advance(MINUTE * 30);
        assert!(h.session(&used).await.is_some(), "{half_hours}");
        assert_eq!(h.session(&idle).await.is_some(), half_hours < 2, "{half_hours}");
        h.use_session(used.session.id).await;
    }
    assert_eq!(h.sessions(Some(tenant)).await, [used.session.id]);
    h.clock.advance(MINUTE * 30);
    assert_eq!(h.session(&used).await, None);
    assert_eq!(h.sessions(Some(tenant)).await, []);
}

pub(super) async fn a_remembered_session_lasts_for_thirty_days_and_one_of_an_operator_is_not_remembered(h: Harness) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let tenant = h.tenant().await;
    let owner = h.sign_in_with(&h.link(DashboardLinkCreate::to(tenant, Role::Owner)).await, true).await.unwrap();
    let operator = h.sign_in_with(&h.link(DashboardLinkCreate::for_operator()).await, true).await.unwrap();
    assert_eq!((owner.session.is_remembered(), operator.session.is_remembered()), (true, false));
    h.clock.advance(DAY);
    assert!(h.session(&owner).await.is_some() && h.session(&operator).await.is_none());
    h.clock.advance(DAY * 29 - MINUTE);
    assert_eq!(h.sessions(Some(tenant)).await, [owner.session.id]);
    h.clock.advance(MINUTE);
    assert_eq!(h.session(&owner).await, None);
}

pub(super) async fn sessions_of_tenants_and_operators_are_apart(h: Harness) {
    let (one, other) = (h.tenant().await, h.tenant().await);
    let mut ids = Vec::new();
    for link in [
        DashboardLinkCreate::to(one, Role::Owner),
        DashboardLinkCreate::to(one, Role::Viewer),
        DashboardLinkCreate::to(other, Role::Owner),
        DashboardLinkCreate::for_operator(),
    ] {
        let link = h.link(link).await;
        ids.push(h.sign_in(&link).await.unwrap().session.id);
        h.clock.advance(MINUTE);
    }
    assert_eq!(h.sessions(Some(one)).await, [ids[1], ids[0]]);
    assert_eq!(h.sessions(Some(other)).await, [ids[2]]);
    assert_eq!(h.sessions(None).await, [ids[3]]);
    let revoke = |tenant, id| h.write((tenant, id), async |tx, &(tenant, id)| sessions::revoke(tx, tenant, id).await);
    assert_eq!(revoke(Some(other), ids[0]).await, Err(Error::NotFound));
    assert_eq!(revoke(None, ids[0]).await, Err(Error::NotFound));
    assert_eq!(revoke(Some(one), ids[0]).await, Ok(()));
    assert_eq!(revoke(None, ids[3]).await, Ok(()));
    assert_eq!(h.sessions(Some(one)).await, [ids[1]]);
    assert_eq!(h.sessions(None).await, []);
}

pub(super) async fn an_operator_views_a_tenant(h: Harness) {
    let tenant = h.tenant().await;
    let new = h.sign_in(&h.link(DashboardLinkCreate::for_operator()).await).await.unwrap();
    let owner = h.sign_in(&h.link(DashboardLinkCreate::to(tenant, Role::Owner)).await).await.unwrap();
    let view = |id, tenant| h.write((id, tenant), async |tx, &(id, tenant)| sessions::view(tx, id, tenant).await);
    assert_eq!(h.session(&new).await.unwrap().account(), None);
    view(new.session.id, Some(tenant)).await.unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), Some((tenant, Role::Viewer)));
    view(new.session.id, None).await.unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), None);
    assert_eq!(view(owner.session.id, None).await, Err(Error::NotFound));
}

impl Harness {
    pub(super) async fn member(&self, tenant: TenantId, role: Role) -> Member {
        let ada = Email::parse("Ada@example.com").unwrap();
        self.write((tenant, ada, role), async |tx, (tenant, ada, role)| members::add(tx, *tenant, ada, *role).await)
            .await
            .unwrap()
    }

    pub(super) async fn sign_in_member(&self, email: &str) -> Result<NewSession, Error> {
        let email = Email::parse(email).unwrap();
        self.write(email, async |tx, email| sessions::begin_of_member(tx, email).await).await
    }

    pub(super) async fn choose(&self, id: SessionId, tenant: TenantId) -> Result<Session, Error> {
        self.write((id, tenant), async |tx, &(id, tenant)| sessions::choose(tx, id, tenant).await).await
    }
}

pub(super) async fn a_member_signs_in(h: Harness) {
    let tenant = h.tenant().await;
    assert!(matches!(h.sign_in_member("ada@example.com").await, Err(Error::NotAllowed(_))));
    h.member(tenant, Role::Developer).await;
    let new = h.sign_in_member("ADA@example.com").await.unwrap();
    let session = h.session(&new).await.unwrap();
    assert_eq!(session, new.session);
    assert_eq!(session.email.as_ref().map(Email::as_str), Some("ada@example.com"));
    assert_eq!((session.account(), session.identity.as_str()), (Some((tenant, Role::Developer)), "ada@example.com"));
    assert_eq!(h.sessions(Some(tenant)).await, [session.id]);
}

pub(super) async fn a_member_chooses_a_tenant(h: Harness) {
    let tenants = [h.tenant().await, h.tenant().await];
    let foreign = h.tenant().await;
    h.member(tenants[0], Role::Owner).await;
    h.member(tenants[1], Role::Viewer).await;
    let new = h.sign_in_member("ada@example.com").await.unwrap();
    let id = new.session.id;
    assert_eq!((new.session.account(), new.session.is_operator()), (None, false));
    assert_eq!(h.sessions(None).await, [id]);
    for (tenant, role) in [(tenants[0], Role::Owner), (tenants[1], Role::Viewer)] {
        h.choose(id, tenant).await.unwrap();
        h.clock.advance(MINUTE);
        h.use_session(id).await;
        assert_eq!(h.session(&new).await.unwrap().account(), Some((tenant, role)));
        assert_eq!(h.sessions(Some(tenant)).await, [id]);
    }
    assert_eq!(h.sessions(Some(tenants[0])).await, [], "the session shows the other tenant now");
    assert_eq!(h.choose(id, foreign).await, Err(Error::NotFound));
    let by_link = h.sign_in(&h.link(DashboardLinkCreate::to(foreign, Role::Owner)).await).await.unwrap();
    assert_eq!(h.choose(by_link.session.id, tenants[0]).await, Err(Error::NotFound));
    let accounts =
        h.read((), async |tx, ()| sessions::accounts_of(tx, &Email::parse("ada@example.com").unwrap()).await);
    let mut accounts: Vec<_> = accounts.await.unwrap().into_iter().map(|(tenant, role)| (tenant.id, role)).collect();
    accounts.sort_unstable();
    let mut expected = [(tenants[0], Role::Owner), (tenants[1], Role::Viewer)];
    expected.sort_unstable();
    assert_eq!(accounts, expected);
}

pub(super) async fn a_withdrawn_role_holds_from_the_next_request_on(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.member(tenant, Role::Owner).await;
    let new = h.sign_in_member("ada@example.com").await.unwrap();
    h.write((tenant, member.id), async |tx, &(tenant, id)| members::set_role(tx, tenant, id, Role::Viewer).await)
        .await
        .unwrap();
    assert_eq!(h.session(&new).await.unwrap().account(), Some((tenant, Role::Viewer)));
    h.write((tenant, member.id), async |tx, &(tenant, id)| members::remove(tx, tenant, id).await).await.unwrap();
    assert_eq!(h.session(&new).await, None);
    assert_eq!(h.sessions(Some(tenant)).await, []);
}

pub(super) async fn the_sessions_of_a_removed_member_end_for_good(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let member = h.member(tenant, Role::Owner).await;
    let shows_it = h.sign_in_member("ada@example.com").await.unwrap();
    h.member(other, Role::Viewer).await;
    let [shows_none, shows_other] =
        [h.sign_in_member("ada@example.com").await.unwrap(), h.sign_in_member("ada@example.com").await.unwrap()];
    h.choose(shows_other.session.id, other).await.unwrap();
    let by_link = h.sign_in(&h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await).await.unwrap();
    h.write((tenant, member.id), async |tx, &(tenant, id)| members::remove(tx, tenant, id).await).await.unwrap();
    h.member(tenant, Role::Owner).await;
    for ended in [&shows_it, &shows_none] {
        assert_eq!(h.session(ended).await, None);
    }
    assert_eq!(h.session(&shows_other).await.unwrap().account(), Some((other, Role::Viewer)));
    assert_eq!(h.session(&by_link).await.unwrap().account(), Some((tenant, Role::Viewer)));
}

pub(super) async fn a_member_signs_out_everywhere(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.member(tenant, Role::Owner).await;
    h.member(other, Role::Viewer).await;
    let mut sessions = Vec::new();
    for account in [tenant, tenant, other] {
        let new = h.sign_in_member("ada@example.com").await.unwrap();
        h.choose(new.session.id, account).await.unwrap();
        sessions.push(new);
    }
    let email = Email::parse("ada@example.com").unwrap();
    let ended =
        h.write((tenant, email), async |tx, (tenant, email)| sessions::sign_out_everywhere(tx, *tenant, email).await);
    assert_eq!(ended.await, Ok(2));
    assert_eq!(h.sessions(Some(tenant)).await, []);
    assert_eq!(h.sessions(Some(other)).await, [sessions[2].session.id]);
}

pub(super) async fn expired_sign_ins_are_deleted_in_steps(h: Harness) {
    let tenant = h.tenant().await;
    for _ in 0..3 {
        let link = h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await;
        h.sign_in(&link).await.unwrap();
        h.link(DashboardLinkCreate::to(tenant, Role::Viewer)).await;
    }
    assert_eq!(h.delete_expired_sign_ins(10).await, 0);
    h.clock.advance(MINUTE * 11);
    assert_eq!(h.delete_expired_sign_ins(2).await, 2);
    h.clock.advance(MINUTE * 60 * 12);
    assert_eq!(h.delete_expired_sign_ins(2).await, 3, "a link and two sessions");
    assert_eq!(h.delete_expired_sign_ins(2).await, 1);
    assert_eq!(h.delete_expired_sign_ins(2).await, 0);
}

impl Harness {
    async fn member_with_role(&self, tenant: TenantId, email: &str, role: Role) -> Member {
        let email = Email::parse(email).unwrap();
        self.write((tenant, email, role), async |tx, (tenant, email, role)| {
            members::add(tx, *tenant, email, *role).await
        })
        .await
        .unwrap()
    }

    async fn link_to_member(&self, tenant: TenantId, email: &str) -> Result<NewDashboardLink, Error> {
        let input = DashboardLinkCreate::to_member(tenant, Email::parse(email).unwrap());
        self.write(input, async |tx, input| dashboard_links::create(tx, input.clone()).await).await
    }

    async fn set_role_of(&self, member: &Member, role: Role) {
        let changed = self.write((member.clone(), role), async |tx, (member, role)| {
            members::set_role(tx, member.tenant_id, member.id, *role).await
        });
        changed.await.unwrap();
    }

    async fn remove(&self, member: &Member) {
        let removed =
            self.write(member.clone(), async |tx, member| members::remove(tx, member.tenant_id, member.id).await);
        removed.await.unwrap();
    }
}

pub(super) async fn a_link_signs_in_a_member_with_the_role_of_now(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.member_with_role(tenant, "ada@example.com", Role::Viewer).await;
    let link = h.link_to_member(tenant, "ADA@Example.com").await.unwrap();
    assert_eq!((link.link.role, link.link.identity.as_str()), (Role::Viewer, "ada@example.com"));
    h.set_role_of(&member, Role::Developer).await;
    let new = h.sign_in(&link).await.unwrap();
    assert!(matches!(h.sign_in(&link).await, Err(Error::NotAllowed(_))), "it works once");
    assert_eq!(new.session.account(), Some((tenant, Role::Developer)));
    assert_eq!((new.session.member_id, &new.session.email), (Some(member.id), &None));
    assert_eq!(new.session.actor().to_string(), "dashboard:ada@example.com");
    h.set_role_of(&member, Role::Owner).await;
    assert_eq!(h.session(&new).await.unwrap().account(), Some((tenant, Role::Owner)), "the role of each request");
    h.remove(&member).await;
    assert_eq!(h.session(&new).await, None);
    assert_eq!(h.sessions(Some(tenant)).await, []);
    // A person who is added again is another member.
    h.member_with_role(tenant, "ada@example.com", Role::Owner).await;
    assert_eq!(h.session(&new).await, None);
}

pub(super) async fn the_link_of_a_removed_member_is_refused(h: Harness) {
    let tenant = h.tenant().await;
    let member = h.member_with_role(tenant, "ada@example.com", Role::Viewer).await;
    let link = h.link_to_member(tenant, "ada@example.com").await.unwrap();
    h.remove(&member).await;
    h.member_with_role(tenant, "ada@example.com", Role::Owner).await;
    let reason = "ada@example.com is no longer a member of the account. Ask an owner of the account.";
    assert_eq!(h.sign_in(&link).await.unwrap_err(), Error::NotAllowed(reason.to_owned()));
}

pub(super) async fn a_link_needs_a_member_of_its_account(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.member_with_role(other, "ada@example.com", Role::Owner).await;
    let refused = h.link_to_member(tenant, "ada@example.com").await.unwrap_err();
    assert!(matches!(&refused, Error::NotAllowed(reason) if reason.contains("svc member add")), "{refused:?}");
}

/// The person who makes a link for an address, or finds one, need not be the one who has the address.
pub(super) async fn a_link_for_a_member_leads_to_no_other_account(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    h.member_with_role(tenant, "ada@example.com", Role::Viewer).await;
    h.member_with_role(other, "ada@example.com", Role::Owner).await;
    let new = h.sign_in(&h.link_to_member(tenant, "ada@example.com").await.unwrap()).await.unwrap();
    let chosen = h.write((new.session.id, other), async |tx, &(id, other)| sessions::choose(tx, id, other).await);
    assert_eq!(chosen.await, Err(Error::NotFound));
    assert_eq!(h.session(&new).await.unwrap().account(), Some((tenant, Role::Viewer)));
}

pub(super) async fn an_invitation_works_for_seven_days(h: Harness) {
    let tenant = h.tenant().await;
    h.member_with_role(tenant, "ada@example.com", Role::Viewer).await;
    let invite = async || {
        let email = Email::parse("ada@example.com").unwrap();
        let input = DashboardLinkCreate::to_member(tenant, email).valid_for(dashboard_links::INVITATION_LIFETIME);
        h.link(input).await
    };
    let (in_time, late) = (invite().await, invite().await);
    h.clock.advance(MINUTE * 60 * 24 * 7 - Duration::from_micros(1));
    assert!(h.sign_in(&in_time).await.is_ok());
    h.clock.advance(Duration::from_micros(1));
    assert!(matches!(h.sign_in(&late).await, Err(Error::NotAllowed(_))));
}
