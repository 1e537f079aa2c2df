//! Members of tenants.

use async_trait::async_trait;

use crate::accounts::members::{Member, MemberId};
use crate::error::StoreError;
use crate::values::{Email, TenantId};

/// Members of tenants. Addresses are in lower case and compared exactly.
#[async_trait]
pub trait MemberRepository: Send {
    /// Returns one member of a tenant.
    async fn member(&mut self, tenant: TenantId, id: MemberId) -> Result<Option<Member>, StoreError>;

    /// Returns the member of a tenant with an address.
    async fn member_by_email(&mut self, tenant: TenantId, email: &Email) -> Result<Option<Member>, StoreError>;

    /// Returns the first `limit` members of a tenant, in the order of their addresses by byte.
    async fn members(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Member>, StoreError>;

    /// Returns the members of all tenants with an address, in the order of the tenants' ids, at most `limit`.
    async fn memberships(&mut self, email: &Email, limit: u32) -> Result<Vec<Member>, StoreError>;

    /// Adds a member. Fails with [`StoreError::Conflict`] when the tenant has a member with this id or this address.
    async fn insert_member(&mut self, member: &Member) -> Result<(), StoreError>;

    /// Stores the role of a member.
    async fn update_member(&mut self, member: &Member) -> Result<(), StoreError>;

    /// Deletes a member.
    async fn delete_member(&mut self, tenant: TenantId, id: MemberId) -> Result<(), StoreError>;
}
