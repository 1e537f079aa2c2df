//! Bookings: appointments with contacts (`docs/contract.md`, "Bookings").

use std::time::Duration;

use async_trait::async_trait;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::clocks::WriteTime;
use crate::accounts::platform_keys::Area;
use crate::error::{Error, FieldCode, Issue};
use crate::input::schema::JsonSchema;
use crate::input::{Apply, Fields, Input, Record, ToBody};
use crate::operation::{OperationText, Profile};
use crate::resources::contacts::{self, ContactId, OfContact};
use crate::resources::starts::HasStart;
use crate::resources::{BusinessRecord, Create, Filter, NewRecord, Resource, Update, text};
use crate::store::{RecordsByStart, RecordsOfContact, Tx};
use crate::values::EventKind;
use crate::values::{Id, Note, Patch, RecordKind, Text, TextEnum, TimeZone, Timestamp};

/// The id of a booking.
pub type BookingId = Id<Booking>;

/// The length of a booking whose end is not sent.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(60 * 60);

/// The status of a booking. It may change from any value to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum BookingStatus {
    /// The appointment was called off.
    Cancelled,
    /// The appointment is agreed. Every booking starts with this status.
    Confirmed,
    /// The appointment has taken place.
    Completed,
    /// The customer did not come.
    NoShow,
}

/// The texts that the operations have in common.
const PROFILE: Profile = Profile {
    area: Area::Records,
    memory: 1,
    with_article: "a booking",
    singular: "booking",
    plural: "bookings",
    list: OperationText::new("listBookings", "Bookings of every status are included."),
    get: "getBooking",
    create: OperationText::new(
        "createBooking",
        "Creates a booking for a contact, with the status `confirmed`. Without `end_time` it lasts 60 minutes. \
         Bookings may overlap.",
    ),
    update: OperationText::new(
        "updateBooking",
        "A change of `start_time` alone does not move `end_time`; `end_time` must still be after it.",
    ),
    delete: OperationText::NONE,
};

/// A booking: an appointment with a contact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record, Resource)]
#[resource(collection = "bookings", filter = BookingFilter, profile = PROFILE)]
#[record(input)]
pub struct Booking {
    /// The unique identifier of the booking, a UUID of version 7 that the service assigns.
    pub id: BookingId,
    /// The contact the appointment is for. Set at creation, and kept when the contact is deleted. It can be null only
    /// if the booking was not created through the API.
    pub contact_id: Option<ContactId>,
    /// The service that is booked. Set at creation. It can be null only if the booking was not created through the API.
    pub service_name: Option<Text<255>>,
    /// When the appointment starts.
    pub start_time: Timestamp,
    /// When the appointment ends. Always after `start_time`.
    pub end_time: Timestamp,
    /// The status of the appointment. Only updates change it; the service never changes it by itself.
    pub status: BookingStatus,
    /// Free text about the appointment, exactly as it was sent. It may have several lines. Null if there is none.
    pub notes: Option<Note<4096>>,
    /// When the booking was created. Unique among the account's bookings.
    pub created_at: Timestamp,
    /// When the booking last changed. Equal to `created_at` until then, and unique among the account's bookings.
    pub updated_at: Timestamp,
}

impl BusinessRecord for Booking {
    const KIND: RecordKind = RecordKind::Booking;
    const PERSONAL: &'static [&'static str] = &["notes"];

    fn contact(&self) -> Option<Uuid> {
        self.contact_id.map(Into::into)
    }

    fn title(&self) -> String {
        text(&self.service_name).unwrap_or("Booking").to_owned()
    }

    fn details(&self, zone: &TimeZone) -> Vec<String> {
        vec![self.status.to_string(), zone.minute_at(self.start_time)]
    }

    fn searched(&self) -> Vec<Option<&str>> {
        vec![text(&self.service_name)]
    }

    fn check(&mut self) -> Result<(), Error> {
        self.check_times()
    }
}

impl OfContact for Booking {
    fn of_contact(tx: &mut dyn Tx) -> &mut dyn RecordsOfContact<Self> {
        tx
    }
}

impl HasStart for Booking {
    fn start(&self) -> Option<Timestamp> {
        Some(self.start_time)
    }

    fn by_start(tx: &mut dyn Tx) -> &mut dyn RecordsByStart<Self> {
        tx
    }
}

/// A new booking. Its status is `confirmed`. Bookings may overlap.
#[derive(Clone, Debug, PartialEq, Input)]
#[input(record = Booking)]
pub struct BookingCreate {
    /// The contact the appointment is for: the `id` of a contact of the account that is not deleted.
    pub contact_id: ContactId,
    /// The service that is booked. Must be a single line.
    pub service_name: Text<255>,
    /// When the appointment starts, in RFC 3339 with an offset.
    pub start_time: Timestamp,
    /// When the appointment ends, in RFC 3339 with an offset. It must be after `start_time`. If it is left out or null,
    /// the appointment lasts 60 minutes.
    pub end_time: Option<Timestamp>,
    /// Free text about the appointment. It may have several lines and is kept exactly as sent.
    pub notes: Option<Note<4096>>,
}

impl BookingCreate {
    /// Returns a booking of 60 minutes.
    pub fn new(contact_id: ContactId, service_name: Text<255>, start_time: Timestamp) -> Self {
        Self { contact_id, service_name, start_time, end_time: None, notes: None }
    }
}

/// Changes to a booking. A field that is left out keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Input, Apply)]
#[input(record = Booking, patch)]
#[apply(to = Booking)]
pub struct BookingUpdate {
    /// The new status of the appointment. Any status may follow any other. A change to `cancelled` fires
    /// `booking.cancelled`.
    pub status: Patch<BookingStatus>,
    /// Free text about the appointment. It may have several lines and is kept exactly as sent. Null clears it.
    pub notes: Patch<Option<Note<4096>>>,
    /// When the appointment starts, in RFC 3339 with an offset. `end_time` does not move with it, and must still be
    /// after it.
    pub start_time: Patch<Timestamp>,
    /// When the appointment ends, in RFC 3339 with an offset. It must be after `start_time` once the change is applied.
    pub end_time: Patch<Timestamp>,
}

/// The filter of the list of bookings. Requests cannot send it: the contract gives the list no parameters of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BookingFilter {
    /// Returns only bookings with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub status: Option<BookingStatus>,
}

impl Input for BookingFilter {
    fn take(_fields: &mut Fields) -> Option<Self> {
        Some(Self::default())
    }
}

impl ToBody for BookingFilter {
    fn write_fields<M: SerializeMap>(&self, _object: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl Filter<Booking> for BookingFilter {
    fn none() -> Self {
        Self::default()
    }
    fn matches(&self, row: &Booking) -> bool {
        self.status.is_none_or(|status| status == row.status)
    }
}

impl Booking {
    /// Checks that the booking ends after it starts.
    pub(crate) fn check_times(&self) -> Result<(), Error> {
        if self.end_time > self.start_time {
            return Ok(());
        }
        Err(Issue::new(FieldCode::OutOfRange, "must be after start_time").on("end_time"))
    }
}

#[async_trait]
impl Create for Booking {
    type Input = BookingCreate;

    async fn build(tx: &mut dyn Tx, new: NewRecord, input: BookingCreate) -> Result<Self, Error> {
        let end_time = match input.end_time {
            Some(end) => end,
            None => input.start_time.checked_add(DEFAULT_DURATION).ok_or_else(|| {
                Issue::new(FieldCode::OutOfRange, "must leave an hour before the end of the year 9999").on("start_time")
            })?,
        };
        let booking = Self {
            id: new.id.into(),
            contact_id: Some(input.contact_id),
            service_name: Some(input.service_name),
            start_time: input.start_time,
            end_time,
            status: BookingStatus::Confirmed,
            notes: input.notes,
            created_at: new.now,
            updated_at: new.now,
        };
        booking.check_times()?;
        contacts::referenced(tx, new.tenant_id, input.contact_id).await?;
        Ok(booking)
    }

    fn created_events(&self) -> Vec<EventKind> {
        vec![EventKind::BookingCreated]
    }
}

#[async_trait]
impl Update for Booking {
    type Input = BookingUpdate;

    fn apply(&mut self, change: BookingUpdate, _at: WriteTime) -> Result<(), Error> {
        change.apply_to(self);
        self.check_times()
    }

    fn set_updated_at(&mut self, now: Timestamp) {
        self.updated_at = now;
    }

    fn changed_events(&self, before: &Self) -> Vec<EventKind> {
        let mut events = Vec::with_capacity(2);
        if self.status != before.status && self.status == BookingStatus::Cancelled {
            events.push(EventKind::BookingCancelled);
        }
        events.push(EventKind::BookingUpdated);
        events
    }
}
