//! The table of bookings.

use svc_core::resources::NoFilter;
use svc_core::resources::bookings::Booking;
use svc_core::values::TenantId;

use crate::table::{Query, ResourceTable, record};

record!(Booking, "bookings", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, created_at],
    updated: [contact_id, service_name, start_time, end_time, status, notes, updated_at],
});

impl ResourceTable for Booking {
    fn restrict(_filter: &NoFilter, _query: &mut Query) {}
}
