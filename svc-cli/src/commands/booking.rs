//! `svc booking`.

use svc_core::resources::bookings::{Booking, BookingCreate, BookingUpdate};
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::TenantId;
use uuid::Uuid;

use super::lookup::Lookup;
use super::records::Managed;
use crate::output::{Table, or_dash};
use crate::times::moment;

impl Managed for Booking {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: BookingCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, change: BookingUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
    }

    fn table(bookings: &[Self]) -> Table {
        Table::new(["ID", "STATUS", "SERVICE", "START", "END", "CONTACT"], bookings, |booking| {
            [
                booking.id.to_string(),
                booking.status.to_string(),
                or_dash(booking.service_name.as_ref()),
                moment(booking.start_time),
                moment(booking.end_time),
                or_dash(booking.contact_id),
            ]
        })
    }
}
