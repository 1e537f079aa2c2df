//! References between rows, also those without a foreign key in the schema.

use svc_core::store::StoreResult;

use super::{Finding, find, table_named};
use crate::column::{Row, Value};
use crate::dialect::Dialect;
use crate::sql::Sql;

/// References within a tenant: a table, its column with an id, and the table that the id must be in.
const WITHIN_TENANT: &[(&str, &str, &str)] = &[
    ("invoices", "contact_id", "contacts"),
    ("payments", "invoice_id", "invoices"),
    ("bookings", "contact_id", "contacts"),
    ("quotes", "contact_id", "contacts"),
    ("jobs", "contact_id", "contacts"),
    ("jobs", "quote_id", "quotes"),
    ("jobs", "invoice_id", "invoices"),
    ("oauth_codes", "grant_id", "oauth_grants"),
    ("oauth_tokens", "grant_id", "oauth_grants"),
    ("subscription_kinds", "subscription_id", "subscriptions"),
    ("events", "only_for", "subscriptions"),
    ("deliveries", "event_id", "events"),
    ("deliveries", "subscription_id", "subscriptions"),
    ("delivery_attempts", "delivery_id", "deliveries"),
    ("endpoint_schedule", "subscription_id", "subscriptions"),
    ("replays", "subscription_id", "subscriptions"),
];

/// The same for tables without a tenant.
const GLOBAL: &[(&str, &str, &str)] = &[
    ("used_signatures", "key_id", "api_keys"),
    ("oauth_grants", "app_id", "oauth_apps"),
    ("tenants", "sandbox_of", "tenants"),
    ("tenants", "sandbox_id", "tenants"),
];

/// Tables that are read before what refers to them on PostgreSQL, as both may be on different servers of Citus, which joins no
/// such tables. They have few rows.
const READ_FIRST: [&str; 4] = ["tenants", "api_keys", "oauth_apps", "oauth_grants"];

/// Tables in whose rows the tenant need not exist.
const WITHOUT_TENANT: [&str; 5] = [
    // The stream of the server is of no tenant.
    "streams",
    // An idempotency key is unique within an account, within the grant of an app or within a platform key, and the record stays
    // when these are gone.
    "idempotency",
    // They are written after the fact, without the lock of the tenant, which may be a sandbox that was deleted meanwhile. Upkeep
    // deletes requests and counts by their age, and positions once their tenant is gone.
    "request_log",
    "attempt_counts",
    "stream_positions",
];

/// Returns all references, each with whether it is within a tenant.
fn references() -> impl Iterator<Item = (&'static str, &'static str, &'static str, bool)> {
    let has_tenant = |name: &str| !WITHOUT_TENANT.contains(&name);
    let of_tenants =
        super::TABLES.iter().filter(move |table| table.position("tenant_id").is_some() && has_tenant(table.name));
    let of_tenants = of_tenants.map(|table| (table.name, "tenant_id", "tenants", false));
    let global = GLOBAL.iter().map(|&(table, column, parent)| (table, column, parent, false));
    let within = WITHIN_TENANT.iter().map(|&(table, column, parent)| (table, column, parent, true));
    of_tenants.chain(global).chain(within)
}

/// Adds a finding for each row that refers to a missing one.
pub(super) async fn orphans(sql: &mut dyn Sql, dialect: Dialect, findings: &mut Vec<Finding>) -> StoreResult<()> {
    for (table, column, parent, is_within_tenant) in references() {
        let (columns, same_tenant) =
            if is_within_tenant { ("tenant_id, id", "p.tenant_id = c.tenant_id AND ") } else { ("id", "") };
        let (first, parents) = if dialect == Dialect::Postgres && READ_FIRST.contains(&parent) {
            (format!("WITH parents AS MATERIALIZED (SELECT {columns} FROM {parent}) "), "parents")
        } else {
            (String::new(), parent)
        };
        let condition = format!(
            "c.{column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {parents} p WHERE {same_tenant}p.id = c.{column})"
        );
        find(sql, &first, table_named(table), &condition, &problem(column, parent), findings).await?;
    }
    Ok(())
}

fn problem(column: &str, parent: &str) -> String {
    format!("{column} refers to a row that does not exist in {parent}")
}

/// Adds a finding for each pair of tables with a violated foreign key that has no finding yet. SQLite does not say which rows
/// violate it.
pub(super) async fn by_foreign_keys(sql: &mut dyn Sql, findings: &mut Vec<Finding>) -> StoreResult<()> {
    let mut found = Vec::new();
    let mut each = |row: &dyn Row| {
        if let (Value::Text(table), Value::Text(parent)) = (row.value(0)?, row.value(1)?) {
            found.push((table.to_owned(), parent.to_owned()));
        }
        Ok(())
    };
    sql.query("SELECT DISTINCT \"table\", parent FROM pragma_foreign_key_check", &[], &mut each).await?;
    for (table, parent) in found {
        let Some(table) = super::TABLES.iter().find(|known| known.name == table) else { continue };
        let ending = format!("in {parent}");
        if !findings.iter().any(|known| known.table == table.name && known.problem.ends_with(&ending)) {
            let problem = format!("rows refer to rows that do not exist {ending}");
            findings.push(Finding { table: table.name, id: None, problem });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use svc_test_support::postgres::DISTRIBUTE_AGAIN;

    use super::{READ_FIRST, references};

    /// Returns whether the rows of a table are on the servers of their accounts, by the script for operators.
    fn is_distributed(table: &str) -> bool {
        let place = DISTRIBUTE_AGAIN.split_once(&format!("('{table}', ")).unwrap_or_else(|| panic!("{table}")).1;
        !place.starts_with("NULL")
    }

    #[test]
    fn no_tables_of_different_servers_of_citus_are_joined() {
        let mut apart = 0;
        for (table, column, parent, is_within_tenant) in references() {
            let together = match (is_distributed(table), is_distributed(parent)) {
                (true, true) => is_within_tenant,
                (false, false) => true,
                _ => false,
            };
            assert!(together || READ_FIRST.contains(&parent), "{table}.{column} and {parent}");
            apart += usize::from(!together);
        }
        assert!(apart > 5, "{apart}");
    }
}
