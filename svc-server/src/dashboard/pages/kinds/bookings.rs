//! The pages of bookings.

use svc_core::platform::operations::Records;
use svc_core::prelude::{Booking, BookingStatus};
use svc_core::values::RecordKind;

use super::Control::{Choice, Line, Lines};
use super::FormPurpose::{Edited, New};
use super::{CONTACT_HINT, Kind, bulk, contact, field, time};

pub(crate) const BOOKINGS: Kind = Kind {
    records: RecordKind::Booking,
    collection: "bookings",
    title: "Bookings",
    one: "booking",
    icon: "booking",
    statuses,
    name: &["service_name"],
    columns: &[("Contact", "contact_id"), ("Status", "status"), ("Starts", "start_time"), ("Ends", "end_time")],
    file: "id service_name contact_id contact status start_time end_time notes created_at updated_at",
    form: &[
        contact(CONTACT_HINT).only(New),
        field("service_name", "Service", Line, "").only(New),
        field("status", "Status", Choice(statuses), "").only(Edited),
        time("start_time", "start_time_offset", "Starts", ""),
        time("end_time", "end_time_offset", "Ends", "An hour after it starts, if it is empty.").only(New),
        time("end_time", "end_time_offset", "Ends", "").only(Edited),
        field("notes", "Notes", Lines, ""),
    ],
    create: &Records::<Booking>::CREATE,
    update: &Records::<Booking>::UPDATE,
    bulk: &[
        bulk("confirmed", "Mark as confirmed", &Records::<Booking>::UPDATE, r#"{"status":"confirmed"}"#, &[]),
        bulk("completed", "Mark as completed", &Records::<Booking>::UPDATE, r#"{"status":"completed"}"#, &[]),
        bulk("no_show", "Mark as no show", &Records::<Booking>::UPDATE, r#"{"status":"no_show"}"#, &[]),
        bulk("cancelled", "Cancel", &Records::<Booking>::UPDATE, r#"{"status":"cancelled"}"#, &[]),
    ],
};

fn statuses() -> Vec<&'static str> {
    BookingStatus::ALL.iter().map(|status| status.as_str()).collect()
}
