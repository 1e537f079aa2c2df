//! Rows of bookings.

use svc_core::resources::bookings::Booking;
use svc_core::resources::crud::NoFilter;

use crate::table::{Query, table};

table!(Booking, "bookings", soft_delete: false, [
    id, contact_id, service_name, start_time, end_time, status, notes, created_at, updated_at,
] {
    fn restrict(_filter: &NoFilter, _query: &mut Query) {}
});
