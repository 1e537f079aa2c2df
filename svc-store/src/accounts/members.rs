//! The table of the members of tenants.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::members::{Member, MemberId};
use svc_core::store::{MemberRepository, StoreResult};
use svc_core::values::{Email, TenantId};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow as _, record, select};

record!(Member, "members", key: [tenant_id, id], {
    inserted: [tenant_id, id, email, created_at],
    updated: [role],
});

static BY_EMAIL: LazyLock<String> = LazyLock::new(|| select::<Member>("WHERE tenant_id = $1 AND email = $2"));
static OF_TENANT: LazyLock<String> = LazyLock::new(|| select::<Member>("WHERE tenant_id = $1 ORDER BY email LIMIT $2"));
static OF_EMAIL: LazyLock<String> = LazyLock::new(|| select::<Member>("WHERE email = $1 ORDER BY tenant_id LIMIT $2"));
const DELETE: &str = "DELETE FROM members WHERE tenant_id = $1 AND id = $2";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&BY_EMAIL, &OF_TENANT, &OF_EMAIL, DELETE]
}

#[async_trait]
impl MemberRepository for SqlTx<'_> {
    async fn member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<Option<Member>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn member_by_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<Member>> {
        self.fetch_one(&BY_EMAIL, &[tenant.param(), email.param()], Member::read).await
    }

    async fn members(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Member>> {
        self.fetch(&OF_TENANT, &[tenant.param(), limit.param()], Member::read).await
    }

    async fn memberships(&mut self, email: &Email, limit: u32) -> StoreResult<Vec<Member>> {
        self.fetch(&OF_EMAIL, &[email.param(), limit.param()], Member::read).await
    }

    async fn insert_member(&mut self, member: &Member) -> StoreResult<()> {
        self.insert_record(&[], member).await
    }

    async fn update_member(&mut self, member: &Member) -> StoreResult<()> {
        self.update_record(member, &[member.tenant_id.param(), member.id.param()]).await
    }

    async fn delete_member(&mut self, tenant: TenantId, id: MemberId) -> StoreResult<()> {
        self.pipeline(DELETE, &[tenant.param(), id.param()]).await
    }
}
