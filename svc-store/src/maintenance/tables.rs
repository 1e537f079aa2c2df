//! The list of all tables with data of tenants, in an order in which every row comes after the rows that it refers to.

use svc_core::accounts::apps::App;
use svc_core::accounts::audit::AuditEntry;
use svc_core::accounts::grants::{AuthorizationCode, Grant, Token};
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::ApiKey;
use svc_core::accounts::members::Member;
use svc_core::accounts::operational::OperationalEvent;
use svc_core::accounts::platform_keys::PlatformKey;
use svc_core::accounts::shared_links::SharedLink;
use svc_core::accounts::tenants::Tenant;
use svc_core::requests::ApiRequest;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{Invoice, Payment};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::Quote;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::replays::Replay;
use svc_core::webhooks::statistics::AttemptCount;
use svc_core::webhooks::streams::{Stream, StreamPosition};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::accounts::signatures::UsedSignature;
use crate::accounts::tenants::LastNumber;
use crate::column::CellError;
use crate::dialect::Dialect;
use crate::sql::Cells;
#[cfg(test)]
use crate::table::Statements;
use crate::table::{ColumnInfo, TableRow};
use crate::webhooks::schedule::ScheduledEndpoint;
use crate::webhooks::subscriptions::SubscriptionKind;

/// A table.
#[derive(Debug)]
pub(crate) struct TableInfo {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [ColumnInfo],
    /// The columns that identify a row. An index of both databases begins with them, in any order.
    pub(crate) key: &'static [&'static str],
    /// How many of the columns are no fields of the record.
    extra: usize,
    /// Reads a row that was selected by [`read_order`](TableInfo::read_order), as the service reads it.
    pub(crate) read: fn(&mut Cells<'_>) -> Result<(), CellError>,
    #[cfg(test)]
    pub(crate) statements: fn() -> &'static Statements,
}

impl TableInfo {
    const fn of<R: TableRow>() -> Self {
        Self {
            name: R::TABLE,
            columns: R::COLUMNS,
            key: R::KEY,
            extra: R::EXTRA,
            read: read_row::<R>,
            #[cfg(test)]
            statements: R::statements,
        }
    }

    /// Returns the positions in `key` in the order in which an index of this database begins with them.
    pub(crate) fn index_order(&self, dialect: Dialect) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.key.len()).collect();
        if dialect == Dialect::Sqlite && self.name == AttemptLog::TABLE {
            // The tenant comes last there, so that the attempts of all tenants are appended.
            order.rotate_left(1);
        }
        order
    }

    /// Returns the position of a column in `columns`.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == column)
    }

    pub(crate) fn column_names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Returns all columns in the order in which a record is read: its fields, then the other columns.
    pub(crate) fn read_order(&self) -> Vec<&'static str> {
        let (extra, fields) = self.columns.split_at(self.extra);
        fields.iter().chain(extra).map(|(name, _)| *name).collect()
    }
}

fn read_row<R: TableRow>(cells: &mut Cells<'_>) -> Result<(), CellError> {
    R::read(cells)?;
    R::read_extra(cells)?;
    Ok(())
}

/// All tables except `settings` and `schema_migrations`, which describe the database itself, `request_windows`, whose rows
/// are only needed for a minute, `dashboard_links` and
/// `dashboard_sessions`, as nobody is signed in to a copy, `uploads`, which last a day, and the index of searches, which is made anew. A test compares the list with both schemas.
pub(crate) const TABLES: &[TableInfo] = &[
    TableInfo::of::<Tenant>(),
    TableInfo::of::<LastNumber>(),
    TableInfo::of::<ApiKey>(),
    TableInfo::of::<Member>(),
    TableInfo::of::<SharedLink>(),
    TableInfo::of::<PlatformKey>(),
    TableInfo::of::<App>(),
    TableInfo::of::<Grant>(),
    TableInfo::of::<AuthorizationCode>(),
    TableInfo::of::<Token>(),
    TableInfo::of::<UsedSignature>(),
    TableInfo::of::<StoredResponse>(),
    TableInfo::of::<Contact>(),
    TableInfo::of::<Invoice>(),
    TableInfo::of::<Payment>(),
    TableInfo::of::<Booking>(),
    TableInfo::of::<Quote>(),
    TableInfo::of::<Job>(),
    TableInfo::of::<WebhookSubscription>(),
    TableInfo::of::<SubscriptionKind>(),
    TableInfo::of::<Stream>(),
    TableInfo::of::<StreamPosition>(),
    TableInfo::of::<Event>(),
    TableInfo::of::<OperationalEvent>(),
    TableInfo::of::<Delivery>(),
    TableInfo::of::<AttemptLog>(),
    TableInfo::of::<AttemptCount>(),
    TableInfo::of::<ScheduledEndpoint>(),
    TableInfo::of::<Replay>(),
    TableInfo::of::<AuditEntry>(),
    TableInfo::of::<ApiRequest>(),
];
