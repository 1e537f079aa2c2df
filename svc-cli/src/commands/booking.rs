//! `svc booking`.

use svc_core::find::SearchParams;
use svc_core::lookup::KindInAccount;
use svc_core::operation::Listing;
use svc_core::platform::operations::Records;
use svc_core::resources::bookings::{Booking, BookingCreate, BookingFilter, BookingUpdate};

use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};

impl ResourceCommands for Booking {
    type ListFilter = Listing<SearchParams, BookingFilter>;
    type Create = BookingCreate;
    type Update = BookingUpdate;
    type Creation = Self;
    const KIND: KindInAccount = KindInAccount::Booking;
    const LIST: ListOperation<Self> = Records::<Self>::SEARCH;
    const CREATE: CreateOperation<Self> = Records::<Self>::CREATE;
    const UPDATE: UpdateOperation<Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str =
        "--contact b27d40aa91c3 --service-name 'Boiler service' \\\n    --start '2026-03-14 09:00'";
    const UPDATE_EXAMPLE: &'static str = "--status completed";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("STATUS", "status"),
        ("START", "start_time"),
        ("CONTACT", "contact_id"),
        ("SERVICE", "service_name"),
        ("END", "end_time"),
    ];
}
