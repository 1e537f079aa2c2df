//! The table of bookings.

use svc_core::resources::bookings::{Booking, BookingFilter};
use svc_core::values::TenantId;

use crate::table::{Query, ResourceTable, StartTable, record};

record!(Booking, "bookings", key: [tenant_id, id], {
    extra: [tenant_id: TenantId],
    inserted: [id, created_at],
    updated: [contact_id, service_name, start_time, end_time, status, notes, updated_at],
});

impl ResourceTable for Booking {
    fn restrict(filter: &BookingFilter, query: &mut Query) {
        if let Some(status) = filter.status {
            query.equals("status", status.as_str().into());
        }
    }
}

impl StartTable for Booking {
    const START: &'static str = "start_time";
}
