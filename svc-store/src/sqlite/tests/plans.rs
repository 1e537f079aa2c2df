//! The query plans of SQLite.

use super::*;
use crate::dialect::Dialect;
use crate::maintenance::TABLES;
use crate::resources::payments;
use crate::statements::every_list;
use crate::table::{TableRow as _, get_many_statement};
use crate::webhooks::deliveries::List;
use crate::webhooks::{attempts, deliveries, streams};

/// Returns the steps of the plan of a statement.
fn explained(connection: &SqliteConnection, sql: &str) -> Vec<String> {
    let mut explain = connection.raw().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap()
}

/// A retention step costs as much as the rows it reads, and so does checking the references to the rows it deletes.
#[test]
fn a_retention_step_scans_no_table() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in crate::webhooks::retention::STATEMENTS.iter().chain([&streams::DELETE_WITHOUT_ACCOUNT]) {
        let plan = explained(&connection, sql);
        let text = plan.join("; ");
        let scans = text.replace("SCAN CONSTANT ROW", "").contains("SCAN ");
        assert!(!scans && !text.contains("TEMP B-TREE"), "{sql}: {text}");
        if sql.contains("deliveries d") {
            assert!(
                text.contains("d USING INDEX sqlite_autoindex_deliveries_1 (tenant_id=? AND id>? AND id<?)"),
                "{sql}: {text}"
            );
        }
    }
}

/// A search reads the index of trigrams once, in the order of its places, and a text for what it finds.
#[test]
fn a_search_reads_the_index_of_trigrams_once() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let searches = crate::search::own_statements(Dialect::Sqlite);
    let sql = searches.iter().find(|sql| sql.contains("MATCH")).unwrap();
    let plan = explained(&connection, sql);
    let [index, text] = plan.as_slice() else { panic!("{plan:?}") };
    assert!(index.starts_with("SCAN search_index VIRTUAL TABLE"), "{plan:?}");
    assert_eq!(text, "SEARCH search_texts USING INTEGER PRIMARY KEY (rowid=?)");
}

/// A page costs O(limit) when the plan reads one index in the requested order, without a scan or a sort. The plan depends
/// only on the schema, as this store never runs ANALYZE.
#[test]
fn every_list_reads_an_index_in_order() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for (name, sql, _) in every_list(Dialect::Sqlite) {
        let plan = explained(&connection, &sql);
        let text = plan.join("; ");
        assert!(!text.contains("SCAN"), "{name}: {text}");
        assert!(!text.contains("TEMP B-TREE"), "{name}: {text}");
        assert!(plan.iter().any(|step| step.contains("tenant_id=?")), "{name}: {text}");
        // Every condition except the position is part of the index search, so that no row is read unnecessarily.
        let equalities = |text: &str| text.matches("=?").count();
        for step in plan.iter().filter(|step| step.contains("SEARCH")) {
            let arm = sql.split(" UNION ALL ").next().unwrap_or_default();
            // That of two columns is the condition of an index.
            let wanted = arm.matches(" = ").count() - arm.matches("updated_at = created_at").count();
            let unique = step.contains("_number=?");
            assert!(equalities(step) >= wanted || unique, "{name}: {step} of {sql}");
        }
    }
}

#[test]
fn a_record_is_found_by_its_id_alone_by_an_index() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in crate::accounts::owners::statements() {
        let plan = explained(&connection, sql);
        let text = plan.join("; ");
        assert!(text.contains("_by_id (id=?)") && !text.contains("SCAN"), "{sql}: {text}");
    }
}

/// A row that is not deleted is found by one search, of the table itself.
#[test]
fn a_record_that_can_be_deleted_is_found_by_the_key_of_its_table() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for (table, sql) in
        [("contacts", &Contact::statements().get), ("subscriptions", &WebhookSubscription::statements().get)]
    {
        let search = format!("SEARCH {table} USING PRIMARY KEY (tenant_id=? AND live=? AND id>? AND id<?)");
        let plan = explained(&connection, sql);
        let searches: Vec<&String> = plan.iter().filter(|step| step.contains("SEARCH")).collect();
        assert_eq!(searches, [&search, &search], "{sql}");
    }
}

/// An event, and a change of one subscription, do not read the kinds that other subscriptions of the tenant want.
#[test]
fn the_kinds_of_events_that_subscriptions_want_are_found_by_indexes() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let plans =
        crate::webhooks::subscriptions::statements().into_iter().filter(|sql| sql.contains("subscription_kinds"));
    let plans: Vec<Vec<String>> = plans.map(|sql| explained(&connection, sql)).collect();
    assert_eq!(
        plans,
        [
            ["SEARCH subscription_kinds USING INDEX kinds_of_subscription (tenant_id=? AND subscription_id=?)"],
            ["SEARCH subscription_kinds USING PRIMARY KEY (tenant_id=? AND kind=?)"],
        ]
    );
}

/// Reading the rows that belong to a record costs as much as is returned.
#[test]
fn the_history_of_a_record_is_found_by_indexes() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let statements =
        [crate::webhooks::events::statements(), crate::accounts::audit::statements(), payments::statements()];
    let found: Vec<String> = statements
        .concat()
        .into_iter()
        .filter(|sql| ["record_id = ", "object_id = ", "invoice_id = "].iter().any(|column| sql.contains(column)))
        .map(|sql| explained(&connection, sql).join("; "))
        .collect();
    assert_eq!(
        found,
        [
            "SEARCH events USING INDEX events_of_record (record_id=? AND tenant_id=? AND id>? AND id<?)",
            "SEARCH events USING INDEX events_of_record (record_id=? AND tenant_id=? AND id>? AND id<?)",
            "SEARCH audit_log USING INDEX audit_log_of_object (tenant_id=? AND object_id=? AND id<?)",
            "SEARCH payments USING INDEX payments_of_invoice (tenant_id=? AND invoice_id=?)",
        ]
    );
    let names = explained(&connection, &get_many_statement::<Contact>()).join("; ");
    assert_eq!(
        names.matches("SEARCH contacts USING PRIMARY KEY (tenant_id=? AND live=? AND id=?)").count(),
        2,
        "{names}"
    );
}

#[test]
fn a_contact_is_found_by_its_email_alone_by_indexes() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in crate::resources::contacts::statements() {
        let text = explained(&connection, sql).join("; ");
        for index in ["contacts_unchanged_by_email", "contacts_changed_by_email"] {
            assert!(text.contains(&format!("INDEX {index}")), "{sql}: {text}");
        }
        assert_eq!(text.matches("(tenant_id=? AND <expr>=? AND live=?").count(), 2, "{sql}: {text}");
        assert!(!text.contains("SCAN contacts") && !text.contains("TEMP B-TREE"), "{sql}: {text}");
    }
}

#[test]
fn tenants_to_check_for_overdue_invoices_are_found_by_an_index() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let plan = explained(&connection, crate::accounts::tenants::TO_CHECK_OVERDUE);
    let searches = plan.iter().filter(|step| step.contains("INDEX tenants_by_overdue_check (overdue_check_at")).count();
    let reads_table = plan.iter().any(|step| step.contains("SCAN tenants") || step.contains("TEMP B-TREE"));
    assert!(searches == 2 && !reads_table, "{plan:?}");
}

/// Queries about one endpoint do not read the deliveries of other endpoints.
#[test]
fn deliveries_of_an_endpoint_are_found_by_its_index() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let mut checked = 0;
    let lists = deliveries::lists(Dialect::Sqlite, Some(Id::nil()));
    let statements = deliveries::statements().into_iter().chain(attempts::statements());
    for sql in statements.chain(lists.iter().map(|list| list.sql.as_str())) {
        if !sql.contains("subscription_id = $") || !sql.contains(" deliveries") {
            continue;
        }
        checked += 1;
        let plan = explained(&connection, sql);
        let text = plan.join("; ");
        assert!(text.contains("INDEX deliveries_") && text.contains("subscription_id=?"), "{sql}: {text}");
        let scans = text.replace("SCAN counted", "").contains("SCAN");
        assert!(!scans && !text.contains("TEMP B-TREE"), "{sql}: {text}");
        // A bounded update finds its rows by their ids, which it selects first.
        let selects_ids = sql.starts_with("UPDATE") && sql.contains("id IN");
        let steps = plan.iter().filter(|step| step.starts_with("SEARCH") || step.starts_with("LIST SUBQUERY"));
        let mut steps = steps.skip_while(|step| selects_ids && !step.starts_with("LIST SUBQUERY"));
        let first = if selects_ids { steps.nth(1) } else { steps.next() };
        assert!(
            first.is_some_and(|step| step.contains("INDEX deliveries_")),
            "the endpoint comes first: {sql}: {text}"
        );
    }
    assert!(checked >= 8, "{checked}");
}

/// A list of deliveries by an index costs O(limit): of an endpoint or a tenant, also of those that failed or are held.
#[test]
fn lists_of_deliveries_read_an_index_in_order() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    let [of_tenant, of_endpoint] = [None, Some(Id::nil())].map(|id| deliveries::lists(Dialect::Sqlite, id));
    for List { sql, indexes } in of_tenant.into_iter().chain(of_endpoint) {
        let indexes = if indexes.is_empty() { &["sqlite_autoindex_deliveries_1"] } else { indexes };
        let plan = explained(&connection, &sql);
        let text = plan.join("; ");
        let reads_indexes = indexes.iter().all(|index| text.contains(&format!("INDEX {index} (tenant_id=?")));
        assert!(reads_indexes && !text.contains("TEMP B-TREE"), "{sql}: {text}");
    }
}

/// Counting a backlog reads only the deliveries that it counts.
#[test]
fn backlogs_are_counted_by_partial_indexes() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for (sql, index) in deliveries::BACKLOGS {
        let plan = explained(&connection, sql);
        let text = plan.join("; ");
        assert!(text.contains(index) && !text.contains("TEMP B-TREE"), "{sql}: {text}");
    }
}

/// For an `IN` of more than two values, SQLite makes a table each time that a statement checks it.
#[test]
fn constraints_are_checked_without_a_table() {
    let scratch = Scratch::new();
    let connection = scratch.connection();
    for sql in TABLES.iter().flat_map(|table| (table.statements)().all()) {
        let mut explain = connection.raw().prepare(&format!("EXPLAIN {sql}")).unwrap();
        let codes: Vec<String> = explain.raw_query().mapped(|row| row.get(1)).collect::<Result<_, _>>().unwrap();
        assert!(!codes.iter().any(|code| code == "OpenEphemeral"), "{sql}: {codes:?}");
    }
}
