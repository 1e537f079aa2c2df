//! Members of tenants.

use async_trait::async_trait;

use super::{MemoryTx, conflict, of_tenant};
use crate::accounts::members::{Member, MemberId};
use crate::error::StoreError;
use crate::store::MemberRepository;
use crate::values::{Email, TenantId};

#[async_trait]
impl MemberRepository for MemoryTx<'_> {
    async fn member(&mut self, tenant: TenantId, id: MemberId) -> Result<Option<Member>, StoreError> {
        Ok(self.state.members.get(&(tenant, id)).cloned())
    }

    async fn member_by_email(&mut self, tenant: TenantId, email: &Email) -> Result<Option<Member>, StoreError> {
        Ok(of_tenant(&self.state.members, tenant).find(|member| member.email == *email).cloned())
    }

    async fn members(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Member>, StoreError> {
        let mut members: Vec<Member> = of_tenant(&self.state.members, tenant).cloned().collect();
        members.sort_by(|a, b| a.email.as_str().cmp(b.email.as_str()));
        members.truncate(limit as usize);
        Ok(members)
    }

    async fn memberships(&mut self, email: &Email, limit: u32) -> Result<Vec<Member>, StoreError> {
        let members = self.state.members.values().filter(|member| member.email == *email);
        Ok(members.take(limit as usize).cloned().collect())
    }

    async fn insert_member(&mut self, member: &Member) -> Result<(), StoreError> {
        if self.member_by_email(member.tenant_id, &member.email).await?.is_some() {
            return Err(conflict("email"));
        }
        super::insert(&mut self.state_mut()?.members, (member.tenant_id, member.id), member)
    }

    async fn update_member(&mut self, member: &Member) -> Result<(), StoreError> {
        self.state_mut()?.members.change(&(member.tenant_id, member.id), |stored| stored.role = member.role);
        Ok(())
    }

    async fn delete_member(&mut self, tenant: TenantId, id: MemberId) -> Result<(), StoreError> {
        self.state_mut()?.members.take(&(tenant, id));
        Ok(())
    }
}
