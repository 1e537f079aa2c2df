//! Bookings: appointments of contacts (contract, "Booking").

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::{Error, FieldCode, Issue};
use crate::input::{input, record};
use crate::resources::contacts;
use crate::resources::crud::{Create, NewRecord, NoFilter, Update, resource};
use crate::store::Tx;
use crate::values::EventKind;
use crate::values::{Note, Patch, Text, Timestamp, text_enum};

/// Length of a booking whose end is not sent.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(60 * 60);

text_enum! {
    /// State of a booking; any may follow any other.
    pub enum BookingStatus {
        Cancelled = "cancelled",
        Confirmed = "confirmed",
        Completed = "completed",
        NoShow = "no_show",
    }
}

record! {
    /// An appointment.
    pub struct Booking {
        /// Identifier.
        pub id: Uuid,
        /// Who comes.
        pub contact_id: Option<Uuid>,
        /// What for.
        pub service_name: Option<Text<255>>,
        /// Begin.
        pub start_time: Timestamp,
        /// End, after the begin.
        pub end_time: Timestamp,
        /// State.
        pub status: BookingStatus,
        /// Remarks.
        pub notes: Option<Note<4096>>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }
}

resource!(Booking, "bookings", NoFilter);

input! {
    /// A new booking, which is confirmed.
    pub struct BookingCreate for Booking {
        /// A live contact of the account.
        contact_id: Uuid,
        /// What for.
        service_name: Text<255>,
        /// Begin.
        start_time: Timestamp,
        /// End, after the begin; 60 minutes after it when left out.
        end_time: Option<Timestamp>,
        /// Remarks.
        notes: Option<Note<4096>>,
    }
}

input! {
    /// Changes to a booking: what is left out stays.
    pub struct BookingUpdate for Booking, patch true {
        /// State; any may follow any other.
        status: Patch<BookingStatus>,
        /// Remarks; null clears.
        notes: Patch<Option<Note<4096>>>,
        /// Begin.
        start_time: Patch<Timestamp>,
        /// End, after the begin.
        end_time: Patch<Timestamp>,
    }
}

impl Booking {
    fn check_times(&self) -> Result<(), Error> {
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
            id: new.id,
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

    fn apply(&mut self, change: BookingUpdate, _now: Timestamp) -> Result<(), Error> {
        change.status.apply(&mut self.status);
        change.notes.apply(&mut self.notes);
        change.start_time.apply(&mut self.start_time);
        change.end_time.apply(&mut self.end_time);
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
