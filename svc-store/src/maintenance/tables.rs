//! All tables with what belongs to tenants, in an order in which every row comes after those that it refers to.

/// What a column holds, which the databases write down differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uuid,
    /// Also what is sealed: it goes from one database to another as it is.
    Bytes,
    Text,
    /// A stranger's text, which is bytes on PostgreSQL because it may hold a NUL.
    ForeignText,
    Int,
    Bool,
    Time,
    Date,
}

/// A table.
#[derive(Debug)]
pub(crate) struct TableInfo {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// What tells its rows apart: an index of both databases begins with it.
    pub(crate) key: &'static [&'static str],
}

impl TableInfo {
    /// Where a column stands in `columns`.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == column)
    }

    pub(crate) fn column_names(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

macro_rules! tables {
    ($($table:ident [$($key:ident)+] { $($column:ident: $kind:ident,)+ })+) => {
        /// All but `settings` and `schema_migrations`, which are the database's own, and `request_windows`, which
        /// are worth a minute.
        pub(crate) const TABLES: &[TableInfo] = &[$(TableInfo {
            name: stringify!($table),
            columns: &[$((stringify!($column), Kind::$kind),)+],
            key: &[$(stringify!($key)),+],
        },)+];
    };
}

tables! {
    tenants [id] {
        id: Uuid, name: Text, developer_access: Text, time_zone: Text, currency: Text, unique_contact_email: Bool,
        created_at: Time, clock: Int, limits: Text,
    }
    numbers [tenant_id kind] {
        tenant_id: Uuid, kind: Text, last: Int,
    }
    api_keys [key_hash] {
        key_hash: Bytes, id: Uuid, tenant_id: Uuid, name: Text, can_write: Bool, prefix: Text, signing_secret: Bytes,
        created_at: Time, expires_at: Time, revoked_at: Time, last_used_at: Time,
    }
    used_signatures [key_id mac] {
        key_id: Uuid, mac: Bytes, expires_at: Time,
    }
    idempotency [tenant_id key] {
        tenant_id: Uuid, key: Text, fingerprint: Bytes, status: Int, location: Text, etag: Text, body: Bytes,
        created_at: Time,
    }
    contacts [tenant_id id] {
        tenant_id: Uuid, live: Bool, id: Uuid, email: Text, first_name: Text, last_name: Text, phone: Text,
        company_name: Text, city: Text, state: Text, postcode: Text, created_at: Time, updated_at: Time,
        deleted_at: Time,
    }
    invoices [tenant_id id] {
        tenant_id: Uuid, id: Uuid, invoice_number: Text, contact_id: Uuid, status: Text, issue_date: Date,
        due_date: Date, total: Int, currency: Text, paid_at: Time, created_at: Time, updated_at: Time,
        amount_paid: Int,
    }
    payments [tenant_id id] {
        tenant_id: Uuid, id: Uuid, invoice_id: Uuid, amount: Int, currency: Text, paid_at: Time,
    }
    bookings [tenant_id id] {
        tenant_id: Uuid, id: Uuid, contact_id: Uuid, service_name: Text, start_time: Time, end_time: Time,
        status: Text, notes: Text, created_at: Time, updated_at: Time,
    }
    quotes [tenant_id id] {
        tenant_id: Uuid, id: Uuid, quote_number: Text, contact_id: Uuid, status: Text, issue_date: Date,
        valid_until: Date, total: Int, currency: Text, created_at: Time, updated_at: Time,
    }
    jobs [tenant_id id] {
        tenant_id: Uuid, id: Uuid, job_number: Text, title: Text, status: Text, job_type: Text, priority: Text,
        contact_id: Uuid, customer_name: Text, customer_email: Text, customer_phone: Text, site_address: Text,
        site_suburb: Text, site_state: Text, site_postcode: Text, scheduled_start: Time, scheduled_end: Time,
        actual_start: Time, actual_end: Time, estimated_total: Int, actual_total: Int, quote_id: Uuid,
        invoice_id: Uuid, created_at: Time, updated_at: Time,
    }
    subscriptions [tenant_id id] {
        tenant_id: Uuid, live: Bool, id: Uuid, url: Text, events: Text, enabled: Bool, description: Text,
        created_at: Time, last_delivery_at: Time, last_delivery_status: Int, disabled_reason: Text, paused_at: Time,
        consecutive_failures: Int, secret: Bytes, previous_secret: Bytes, previous_until: Time, updated_at: Time,
        deleted_at: Time,
    }
    subscription_kinds [tenant_id kind subscription_id] {
        tenant_id: Uuid, kind: Text, subscription_id: Uuid, paused: Bool,
    }
    events [tenant_id id] {
        tenant_id: Uuid, id: Uuid, kind: Text, data: Text, created_at: Time, only_for: Uuid, actor: Text,
    }
    deliveries [tenant_id id] {
        tenant_id: Uuid, id: Uuid, event_id: Uuid, kind: Text, subscription_id: Uuid, state: Text, attempts: Int,
        failures: Int, last_status: Int, next_attempt_at: Time, lease: Uuid, created_at: Time,
    }
    delivery_attempts [tenant_id delivery_id attempt] {
        tenant_id: Uuid, delivery_id: Uuid, attempt: Int, started_at: Time, duration_ms: Int, status: Int,
        error: Text, response_body: ForeignText, response_truncated: Bool, remote_addr: Text,
    }
    turns [tenant_id subscription_id] {
        tenant_id: Uuid, subscription_id: Uuid, at: Time,
    }
    replays [tenant_id id] {
        tenant_id: Uuid, id: Uuid, subscription_id: Uuid, since: Time, until: Time, statuses: Text, missed: Bool,
        position: Time, stepped_at: Time, replayed: Int, created_at: Time, finished_at: Time,
    }
    audit_log [tenant_id id] {
        tenant_id: Uuid, id: Uuid, at: Time, actor: Text, action: Text, object_kind: Text, object_id: Uuid,
        before: Text, after: Text,
    }
}
