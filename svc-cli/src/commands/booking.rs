//! `svc booking`.

use svc_core::resources::bookings::{Booking, BookingCreate, BookingUpdate};
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::{Id, TenantId};

use super::lookup::Lookup;
use super::records::Managed;
use crate::output::{Table, or_dash, state};
use crate::times::full;

impl Managed for Booking {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: BookingCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: BookingUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
    }

    fn table(bookings: &[Self]) -> Table {
        Table::new(["ID", "STATUS", "START", "SERVICE", "END", "CONTACT"], bookings, |booking| {
            [
                booking.id.to_string(),
                state(booking.status),
                full(booking.start_time),
                or_dash(booking.service_name.as_ref()),
                full(booking.end_time),
                or_dash(booking.contact_id),
            ]
        })
    }
}
