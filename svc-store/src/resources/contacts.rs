//! The table of contacts.

use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::values::TenantId;

use crate::record::record;
use crate::repository::{Query, ResourceTable};
use crate::sql::Param;

record!(Contact, "contacts", key: [tenant_id, id], {
    extra: [tenant_id: TenantId, live: bool],
    inserted: [id, created_at],
    updated: [
        email, first_name, last_name, phone, company_name, city, state, postcode, updated_at, deleted_at,
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
