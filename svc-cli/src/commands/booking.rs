//! `svc booking`.

use svc_core::platform::Operation;
use svc_core::platform::operations::Records;
use svc_core::resources::bookings::Booking;
use svc_core::values::{Id, TenantId};

use super::records::{self, Managed};
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::times::full;

impl Managed for Booking {
    type Created = Self;
    const CREATE: Operation<TenantId, Self::Create, Self> = Records::<Self>::CREATE;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;

    fn created(created: Self) -> Result<Outcome, Failure> {
        records::created(&created)
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
