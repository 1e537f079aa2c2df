//! Rows of contacts.

use svc_core::resources::contacts::{Contact, ContactFilter};

use crate::sql::Param;
use crate::table::{Query, table};

table!(Contact, "contacts", soft_delete: true, [
    id, email, first_name, last_name, phone, company_name, city, state, postcode, created_at, updated_at, deleted_at,
] {
    fn restrict(filter: &ContactFilter, query: &mut Query) {
        if let Some(email) = &filter.email {
            query.equals("lower(email)", Param::Text(email.key().into()));
        }
        if filter.include_deleted == Some(true) {
            query.include_deleted();
        }
    }
});
