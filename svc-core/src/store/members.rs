//! Members of tenants, and how they sign in to the dashboard.

use async_trait::async_trait;

use super::StoreResult;
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::members::{Member, MemberId};
use crate::accounts::sessions::{Session, SessionId};
use crate::values::{Email, TenantId, Timestamp};

/// Members of tenants. Addresses are in lower case and compared exactly.
#[async_trait]
pub trait MemberRepository: Send {
    /// Returns one member of a tenant.
    async fn member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<Option<Member>>;

    /// Returns the member of a tenant with an address.
    async fn member_by_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<Member>>;

    /// Returns the first `limit` members of a tenant, in the order of their addresses by byte.
    async fn members(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Member>>;

    /// Returns the members of all tenants with an address, in the order of the tenants' ids, at most `limit`.
    async fn memberships(&mut self, email: &Email, limit: u32) -> StoreResult<Vec<Member>>;

    /// Adds a member. Fails with [`StoreError::Conflict`](crate::error::StoreError::Conflict) when the tenant has a member
    /// with this id or this address.
    async fn insert_member(&mut self, member: &Member) -> StoreResult<()>;

    /// Stores the role of a member.
    async fn update_member(&mut self, member: &Member) -> StoreResult<()>;

    /// Deletes a member.
    async fn delete_member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<()>;
}

/// Links that sign people in to the dashboard, and the sessions that they begin.
#[async_trait]
pub trait SignInRepository: Send {
    /// Adds a link with the SHA-256 digest of its token.
    async fn insert_dashboard_link(&mut self, link: &DashboardLink, token_hash: &[u8; 32]) -> StoreResult<()>;

    /// Deletes the link with this digest and returns it. Of several transactions, one gets it.
    async fn take_dashboard_link(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<DashboardLink>>;

    /// Adds a session with the SHA-256 digest of its token.
    async fn insert_session(&mut self, session: &Session, token_hash: &[u8; 32]) -> StoreResult<()>;

    /// Returns the session with this digest, also if it has ended.
    async fn session_by_token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Session>>;

    /// Locks a session until the transaction ends, and returns it, also if it has ended. No other transaction changes or deletes
    /// it until then.
    async fn lock_session(&mut self, id: SessionId) -> StoreResult<Option<Session>>;

    /// Returns at most `limit` sessions of a tenant, or of those without one, newest first.
    async fn sessions(&mut self, tenant: Option<TenantId>, limit: u32) -> StoreResult<Vec<Session>>;

    /// Stores which tenant a session shows, with which role, and what an operator looks at.
    async fn update_session(&mut self, session: &Session) -> StoreResult<()>;

    /// Stores when a session was last used, which is never set back.
    async fn record_session_use(&mut self, id: SessionId, at: Timestamp) -> StoreResult<()>;

    /// Deletes a session.
    async fn delete_session(&mut self, id: SessionId) -> StoreResult<()>;

    /// Deletes the sessions of a member that show a tenant, or none, and returns them.
    async fn take_sessions_of_member(&mut self, tenant: Option<TenantId>, email: &Email) -> StoreResult<Vec<Session>>;

    /// Deletes at most `limit` links and at most `limit` sessions that expired before `now`, and returns how many rows it
    /// deleted.
    async fn delete_expired_sign_ins(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64>;
}
