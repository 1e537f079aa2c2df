//! The table of contacts.

use async_trait::async_trait;
use svc_core::resources::contacts::{Contact, ContactFilter, ContactId};
use svc_core::store::{ContactEmailRepository, StoreResult};
use svc_core::values::{Email, TenantId};

use crate::column::{Column as _, Param};
use crate::sql::SqlTx;
use crate::table::{Query, ResourceTable, record};

/// Contacts that were never changed have another index by email than those that were, so each part reads one.
const WITH_EMAIL: &str = "SELECT id FROM contacts \
     WHERE tenant_id = $1 AND live = TRUE AND lower(email) = $2 AND updated_at = created_at UNION ALL \
     SELECT id FROM contacts \
     WHERE tenant_id = $1 AND live = TRUE AND lower(email) = $2 AND updated_at <> created_at LIMIT 1";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![WITH_EMAIL]
}

record!(Contact, "contacts", key: [tenant_id, id], {
    extra: [tenant_id: TenantId, live: bool],
    inserted: [id, created_at],
    updated: [
        email, first_name, last_name, phone, company_name, city, state, postcode, updated_at, deleted_at, erasure,
    ],
});

impl ResourceTable for Contact {
    fn restrict(filter: &ContactFilter, query: &mut Query) {
        if let Some(email) = &filter.email {
            query.equals("lower(email)", Param::Text(email.key().into()));
            query.split_by_change();
        }
        if filter.include_deleted == Some(true) {
            query.include_deleted();
        }
    }
}

#[async_trait]
impl ContactEmailRepository for SqlTx<'_> {
    async fn contact_with_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<ContactId>> {
        let params = [tenant.param(), Param::Text(email.key().into())];
        self.fetch_one(WITH_EMAIL, &params, |cells| cells.take("contacts", "id")).await
    }
}
