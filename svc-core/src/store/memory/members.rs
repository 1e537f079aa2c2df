//! Members of tenants, and how they sign in to the dashboard.

use async_trait::async_trait;

use super::{MemoryTx, by_hash, conflict, insert_hashed, of_tenant};
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::members::{Member, MemberId};
use crate::accounts::sessions::{Session, SessionId};
use crate::store::{MemberRepository, SignInRepository, StoreResult};
use crate::values::{Email, TenantId, Timestamp};

#[async_trait]
impl MemberRepository for MemoryTx<'_> {
    async fn member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<Option<Member>> {
        Ok(self.state.members.get(&(tenant, id)).cloned())
    }

    async fn member_by_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<Member>> {
        Ok(of_tenant(&self.state.members, tenant).find(|member| member.email == *email).cloned())
    }

    async fn members(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Member>> {
        let mut members: Vec<Member> = of_tenant(&self.state.members, tenant).cloned().collect();
        members.sort_by(|a, b| a.email.as_str().cmp(b.email.as_str()));
        members.truncate(limit as usize);
        Ok(members)
    }

    async fn memberships(&mut self, email: &Email, limit: u32) -> StoreResult<Vec<Member>> {
        let members = self.state.members.values().filter(|member| member.email == *email);
        Ok(members.take(limit as usize).cloned().collect())
    }

    async fn insert_member(&mut self, member: &Member) -> StoreResult<()> {
        if self.member_by_email(member.tenant_id, &member.email).await?.is_some() {
            return Err(conflict("email"));
        }
        super::insert(&mut self.state_mut()?.members, (member.tenant_id, member.id), member)
    }

    async fn update_member(&mut self, member: &Member) -> StoreResult<()> {
        self.state_mut()?.members.change(&(member.tenant_id, member.id), |stored| stored.role = member.role);
        Ok(())
    }

    async fn delete_member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<()> {
        self.state_mut()?.members.take(&(tenant, id));
        Ok(())
    }
}

#[async_trait]
impl SignInRepository for MemoryTx<'_> {
    async fn insert_dashboard_link(&mut self, link: &DashboardLink, token_hash: &[u8; 32]) -> StoreResult<()> {
        let is_new = self.state_mut()?.dashboard_links.add(*token_hash, link.clone());
        if is_new { Ok(()) } else { Err(conflict("token_hash")) }
    }

    async fn take_dashboard_link(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<DashboardLink>> {
        let links = &mut self.state_mut()?.dashboard_links;
        let link = links.get(token_hash).cloned();
        links.take(token_hash);
        Ok(link)
    }

    async fn insert_session(&mut self, session: &Session, token_hash: &[u8; 32]) -> StoreResult<()> {
        insert_hashed(&mut self.state_mut()?.sessions, session.id, session, token_hash)
    }

    async fn session_by_token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Session>> {
        Ok(by_hash(&self.state.sessions, token_hash).cloned())
    }

    async fn lock_session(&mut self, id: SessionId) -> StoreResult<Option<Session>> {
        Ok(self.state.sessions.get(&id).map(|(session, _)| session.clone()))
    }

    async fn sessions(&mut self, tenant: Option<TenantId>, limit: u32) -> StoreResult<Vec<Session>> {
        let sessions = self.state.sessions.values().rev().map(|(session, _)| session);
        Ok(sessions.filter(|session| session.tenant_id == tenant).take(limit as usize).cloned().collect())
    }

    async fn update_session(&mut self, session: &Session) -> StoreResult<()> {
        self.state_mut()?.sessions.change(&session.id, |(stored, _)| {
            stored.tenant_id = session.tenant_id;
            stored.role = session.role;
            stored.viewed_tenant_id = session.viewed_tenant_id;
        });
        Ok(())
    }

    async fn record_session_use(&mut self, id: SessionId, at: Timestamp) -> StoreResult<()> {
        self.state_mut()?.sessions.change(&id, |(stored, _)| stored.last_used_at = stored.last_used_at.max(at));
        Ok(())
    }

    async fn delete_session(&mut self, id: SessionId) -> StoreResult<()> {
        self.state_mut()?.sessions.take(&id);
        Ok(())
    }

    async fn take_sessions_of_member(&mut self, tenant: Option<TenantId>, email: &Email) -> StoreResult<Vec<Session>> {
        let sessions = self.state.sessions.values().map(|(session, _)| session);
        let of_member = sessions.filter(|session| session.tenant_id == tenant && session.email.as_ref() == Some(email));
        let of_member: Vec<Session> = of_member.cloned().collect();
        for session in &of_member {
            self.state_mut()?.sessions.take(&session.id);
        }
        Ok(of_member)
    }

    async fn delete_expired_sign_ins(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let links = state.dashboard_links.take_first(limit, |_, link| link.expires_at < now);
        let sessions = state.sessions.take_first(limit, |_, (session, _)| session.expires_at < now);
        Ok(links + sessions)
    }
}
