//! Imported rows: they are recognised when they are imported again, and keep lists in order.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::accounts::tenants;
use svc_core::env::first_id_at;
use svc_core::error::Error;
use svc_core::imports::{Import, ImportOptions, Imported};
use svc_core::input::FromJson as _;
use svc_core::input::Input as _;
use svc_core::input::json::Json;
use svc_core::pages::{Limit, ListParams, SentCursor};
use svc_core::resources::contacts::ContactFilter;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::invoices::{Invoice, InvoiceStatus};
use svc_core::resources::kinds::AccountRecord;
use svc_core::resources::{Filter as _, crud};
use uuid::Uuid;

use super::{Rules, json_of, refusal, time};

pub(super) const PLAIN: ImportOptions = ImportOptions { events: true, update: false };
const UPDATE: ImportOptions = ImportOptions { events: true, update: true };

impl Rules {
    pub(super) fn put<R: Import>(&self, row: Value, before: u32, options: ImportOptions) -> Result<Imported, Error> {
        let tenant = self.tenant;
        self.write((tenant, row, before, options), async |tx, (tenant, row, before, options)| {
            let row = R::Row::from_body(row.to_string().as_bytes());
            let tenant = tenants::get(tx, *tenant).await?;
            R::put(tx, &tenant, row?, *before, *options).await
        })
    }

    fn contact_row(&self, row: Value) -> Result<Imported, Error> {
        self.put::<Contact>(row, 0, PLAIN)
    }

    fn invoice_row(&self, row: Value) -> Result<Imported, Error> {
        self.put::<Invoice>(row, 0, PLAIN)
    }

    /// Returns all contacts, read in pages of `limit`.
    fn walk(&self, limit: u32) -> Vec<Contact> {
        let (tenant, mut cursor, mut rows) = (self.tenant, None, Vec::new());
        loop {
            let params = ListParams { limit: Limit::new(limit), cursor, updated_since: None };
            let page = self.write((tenant, params), async |tx, (tenant, params)| {
                crud::list::<Contact>(tx, *tenant, params, &ContactFilter::none()).await
            });
            let page = page.unwrap();
            rows.extend(page.data);
            let Some(next) = page.next_cursor else { return rows };
            cursor = Some(SentCursor::from_json(Json::String(next.to_string())).unwrap());
        }
    }
}

fn differs(result: Result<Imported, Error>) -> Vec<&'static str> {
    let Ok(Imported::Differs { fields, .. }) = result else { unreachable!("{result:?}") };
    fields
}

#[test]
fn a_contact_is_matched_by_its_email() {
    let fixture = Rules::new();
    let ada = json!({ "email": "Ada@example.com", "first_name": " Ada ", "city": null });
    assert_eq!(fixture.contact_row(ada.clone()), Ok(Imported::Added));
    assert_eq!(fixture.new_kinds(), "contact.created");
    assert_eq!(fixture.contact_row(ada), Ok(Imported::Unchanged));
    let contact = fixture.walk(10).pop().unwrap();
    assert_eq!((contact.created_at, contact.first_name.as_ref().unwrap().as_str()), (contact.updated_at, "Ada"));

    fixture.update::<Contact>(contact.id, json!({ "phone": "1" })).unwrap();
    fixture.new_events();
    let row = |body: Value, options| fixture.put::<Contact>(body, 0, options);
    assert_eq!(row(json!({ "email": "Ada@example.com", "first_name": "Ada" }), PLAIN), Ok(Imported::Unchanged));
    assert_eq!(
        differs(row(json!({ "email": "ada@example.com", "phone": null, "city": "Perth" }), PLAIN)),
        ["phone", "city"]
    );
    assert_eq!((fixture.new_kinds(), fixture.walk(10).len()), (String::new(), 1));

    assert_eq!(
        row(json!({ "email": "ada@example.com", "phone": null, "city": "Perth" }), UPDATE),
        Ok(Imported::Updated)
    );
    assert_eq!(fixture.new_kinds(), "contact.updated");
    let quiet = ImportOptions { events: false, update: true };
    assert_eq!(row(json!({ "email": "ada@example.com", "city": "Hobart" }), quiet), Ok(Imported::Updated));
    assert_eq!(row(json!({ "email": "bob@example.com" }), quiet), Ok(Imported::Added));
    assert_eq!(fixture.new_kinds(), "");

    for (bad, want) in [
        (json!({}), "email required"),
        (json!({ "email": null, "city": " " }), "email required"),
        (json!({ "email": "bob", "phone": "x".repeat(51) }), "email invalid_format, phone too_long"),
        (json!({ "email": "eve@example.com", "deleted_at": "2026-01-01T00:00:00Z" }), "deleted_at read_only_field"),
        (json!({ "email": "eve@example.com", "nick": "E" }), "nick unknown_field"),
        (json!({ "email": "eve@example.com", "created_at": "2026-03-15T00:00:00Z" }), "created_at out_of_range"),
        (json!({ "email": "eve@example.com", "created_at": "1969-03-15T00:00:00Z" }), "created_at out_of_range"),
        (json!({ "email": "eve@example.com", "phone": "6.14E+10" }), "phone invalid_format"),
        (
            json!({ "email": "eve@example.com", "phone": "=\"0412\"", "postcode": "1E+05" }),
            "phone invalid_format, postcode invalid_format",
        ),
    ] {
        assert_eq!(refusal(fixture.contact_row(bad.clone())), want, "{bad}");
    }
    assert_eq!((fixture.walk(10).len(), fixture.new_kinds()), (2, String::new()));
}

#[test]
fn an_imported_id_keeps_its_time() {
    let fixture = Rules::new();
    let at = time("2024-05-06T07:08:09.000001Z");
    let id = Uuid::from_u128(first_id_at(at).as_u128() | 7);
    let row = json!({ "id": id, "email": "ada@example.com", "created_at": at, "updated_at": "2025-01-01T00:00:00Z" });
    assert_eq!(fixture.contact_row(row.clone()), Ok(Imported::Added));
    assert_eq!(fixture.contact_row(row), Ok(Imported::Unchanged));
    let contact: Contact = fixture.get(id.into()).unwrap();
    assert_eq!(json_of(&contact)["created_at"], "2024-05-06T07:08:09.000001Z");
    assert_eq!(json_of(&contact)["updated_at"], "2026-03-14T15:09:26.535898Z", "the time of the import");

    let near = Uuid::from_u128(first_id_at(at).as_u128() | 8);
    let foreign = Uuid::from_u128(first_id_at(at).as_u128() + (5 << 64));
    for (bad, want) in [
        (json!({ "id": "0195a3c8-0000-4000-8000-000000000001", "city": "Perth" }), "id invalid_format"),
        (json!({ "id": "0195a3c8", "city": "Perth" }), "id invalid_format"),
        (json!({ "id": first_id_at(time("2026-03-14T16:00:00Z")), "city": "Perth" }), "id out_of_range"),
        (json!({ "id": foreign, "city": "Perth", "created_at": at }), "created_at out_of_range"),
        (json!({ "id": near, "city": "Perth" }), "not_allowed"),
        (json!({ "id": foreign, "email": "ADA@example.com" }), "email_taken"),
    ] {
        assert_eq!(refusal(fixture.contact_row(bad.clone())), want, "{bad}");
    }
    assert_eq!(fixture.contact_row(json!({ "id": foreign, "city": "Perth" })), Ok(Imported::Added));
    let taken = fixture.put::<Contact>(json!({ "id": foreign, "email": "ada@example.com" }), 0, UPDATE);
    assert_eq!(refusal(taken), "email_taken");

    fixture.delete::<Contact>(id.into()).unwrap();
    assert_eq!(refusal(fixture.contact_row(json!({ "id": id, "email": "ada@example.com" }))), "not_allowed");
}

#[test]
fn a_contact_without_email_is_matched_by_its_fields() {
    let fixture = Rules::new();
    let bob = json!({ "first_name": "Bob", "phone": "0400 000 000" });
    assert_eq!(fixture.contact_row(bob.clone()), Ok(Imported::Added));
    assert_eq!(fixture.contact_row(bob.clone()), Ok(Imported::Unchanged));
    let other_order = json!({ "phone": " 0400 000 000", "city": "", "first_name": "Bob" });
    assert_eq!(fixture.contact_row(other_order), Ok(Imported::Unchanged));
    assert_eq!(fixture.put::<Contact>(bob.clone(), 1, PLAIN), Ok(Imported::Added), "the second such row of a file");
    assert_eq!(fixture.put::<Contact>(bob.clone(), 1, PLAIN), Ok(Imported::Unchanged));
    let contacts = fixture.walk(1);
    assert_eq!(contacts.len(), 2);
    let day_before = time("2026-03-13T15:09:26.535896Z")..time("2026-03-14T15:09:26.535897Z");
    assert!(contacts.iter().all(|contact| day_before.contains(&contact.created_at)));

    let id = contacts[0].id;
    fixture.update::<Contact>(id, json!({ "first_name": "Robert" })).unwrap();
    let results = [0, 1].map(|before| fixture.put::<Contact>(bob.clone(), before, PLAIN).unwrap());
    assert!(results.contains(&Imported::Differs { id: id.uuid(), fields: vec!["first_name"] }), "{results:?}");
    fixture.delete::<Contact>(id).unwrap();
    let refused = [0, 1].map(|before| fixture.put::<Contact>(bob.clone(), before, PLAIN));
    let text = format!("The contact {id} of this row was deleted; it stays so.");
    assert!(refused.contains(&Err(Error::NotAllowed(text))), "{refused:?}");
}

#[test]
fn many_contacts_of_the_same_second_are_ordered() {
    let fixture = Rules::new();
    let row = |n: u32| json!({ "first_name": format!("Row {n}"), "created_at": "2024-05-06T00:00:00Z" });
    for _ in 0..2 {
        for n in 0..300 {
            fixture.contact_row(row(n)).unwrap();
        }
    }
    let contacts = fixture.walk(7);
    let times: BTreeSet<_> = contacts.iter().map(|contact| contact.created_at).collect();
    assert_eq!((contacts.len(), times.len()), (300, 300));
    assert_eq!(times.last().copied(), Some(time("2024-05-06T00:00:00Z")));
    assert!(times.first().copied().unwrap() > time("2024-05-05T23:59:59Z"));
    assert!(contacts.is_sorted_by(|a, b| a.id > b.id), "contacts must be ordered by id as well");

    let native: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    assert_eq!(fixture.walk(7)[0], native, "a contact created through the API is the newest");
}

#[test]
fn contacts_are_matched_by_their_fields_where_emails_may_repeat() {
    let fixture = Rules::new();
    let tenant = fixture.tenant;
    fixture
        .write(tenant, async |tx, &tenant| {
            tenants::update(tx, tenant.0, |tenant| tenant.unique_contact_email = false).await
        })
        .unwrap();
    for name in ["Ada", "Bob", "Ada"] {
        fixture.contact_row(json!({ "email": "office@example.com", "first_name": name })).unwrap();
    }
    assert_eq!(fixture.walk(10).len(), 2);
}

#[test]
fn an_invoice_is_matched_by_its_number() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let row = json!({
        "invoice_number": "INV-0041", "contact_id": contact, "status": "sent", "total": 99.95, "currency": "AUD",
        "issue_date": "2026-01-01", "due_date": "2026-02-01",
    });
    assert_eq!(fixture.invoice_row(row.clone()), Ok(Imported::Added));
    assert_eq!(fixture.new_kinds(), "invoice.created");
    assert_eq!(fixture.invoice_row(row.clone()), Ok(Imported::Unchanged));
    let mut other = row;
    other["total"] = json!(100);
    other["amount_paid"] = json!(1);
    assert_eq!(differs(fixture.invoice_row(other)), ["total", "amount_paid"]);
    assert_eq!(
        fixture.invoice(json!({ "total": 1 })).unwrap().invoice_number,
        "INV-0042",
        "numbering continues after the imported number"
    );

    for (number, next) in
        [("2024/17", "INV-0043"), ("INV-00099", "INV-0044"), ("INV-7", "INV-0045"), ("INV-0044 ", "INV-0046")]
    {
        fixture.invoice_row(json!({ "invoice_number": number, "total": 0 })).unwrap();
        assert_eq!(fixture.invoice(json!({ "total": 1 })).unwrap().invoice_number, next, "{number}");
    }
    let huge = json!({ "invoice_number": "INV-1000000000001", "total": 1 });
    assert_eq!(refusal(fixture.invoice_row(huge)), "invoice_number out_of_range");
}

#[test]
fn an_invoice_without_a_number_gets_one_once() {
    let fixture = Rules::new();
    let row = |total: Value| json!({ "total": total, "issue_date": null });
    assert_eq!(fixture.invoice_row(row(json!(5))), Ok(Imported::Added));
    assert_eq!(fixture.invoice_row(row(json!(5))), Ok(Imported::Unchanged));
    assert_eq!(fixture.put::<Invoice>(row(json!(5)), 1, PLAIN), Ok(Imported::Added));
    assert_eq!(fixture.invoice_row(row(json!(6))), Ok(Imported::Added));
    assert_eq!(fixture.invoice(json!({ "total": 1 })).unwrap().invoice_number, "INV-0004");
}

#[test]
fn the_amount_paid_must_agree_with_the_status() {
    let fixture = Rules::new();
    let paid_at = "2026-01-05T00:00:00Z";
    for (number, (row, want)) in [
        (json!({ "status": "paid", "paid_at": paid_at }), Ok("100")),
        (json!({ "status": "paid", "amount_paid": 60 }), Ok("60")),
        (json!({ "status": "paid", "amount_paid": 100.01 }), Err("amount_paid out_of_range")),
        (json!({ "status": "partial" }), Err("amount_paid required")),
        (json!({ "status": "partial", "amount_paid": 100 }), Err("amount_paid out_of_range")),
        (json!({ "status": "partial", "amount_paid": 0.001 }), Err("amount_paid out_of_range")),
        (json!({ "status": "partial", "amount_paid": 30 }), Ok("30")),
        (json!({ "status": "overdue" }), Ok("0")),
        (json!({ "status": "overdue", "amount_paid": 30 }), Ok("30")),
        (json!({ "status": "cancelled", "paid_at": paid_at }), Ok("0")),
        (json!({ "amount_paid": 1 }), Err("amount_paid out_of_range")),
        (json!({ "status": "sent", "paid_at": paid_at }), Err("paid_at out_of_range")),
        (json!({ "status": "gone" }), Err("status invalid_enum")),
        (json!({ "contact_id": ContactId::nil() }), Err("reference_not_found")),
        (json!({ "currency": "JPY", "total": 0.5 }), Err("total out_of_range")),
        (json!({ "total": null }), Err("total not_nullable")),
    ]
    .into_iter()
    .enumerate()
    {
        let number = format!("A{number}");
        let mut body = json!({ "invoice_number": number, "total": 100 });
        body.as_object_mut().unwrap().extend(row.as_object().unwrap().clone());
        let result = fixture.invoice_row(body.clone());
        match want {
            Ok(paid) => {
                assert_eq!(result, Ok(Imported::Added), "{body}");
                assert_eq!(fixture.invoice_row(body.clone()), Ok(Imported::Unchanged), "{body}");
                let tenant = fixture.tenant;
                let stored = fixture.write(tenant, async |tx, &tenant| {
                    let filter = svc_core::resources::invoices::InvoiceFilter::none();
                    let order = svc_core::pages::Order::NewestFirst { before: None };
                    let listing = svc_core::pages::ListQuery { limit: 1, order, filter };
                    Ok(svc_core::store::Repository::<Invoice>::list(tx, tenant, &listing).await?)
                });
                assert_eq!(stored.unwrap()[0].amount_paid.to_string(), paid, "{body}");
            }
            Err(error) => assert_eq!(refusal(result), error, "{body}"),
        }
    }
    assert_eq!(fixture.new_kinds().split(' ').filter(|kind| *kind != "invoice.created").count(), 0);
}

#[test]
fn an_id_and_a_number_must_name_the_same_invoice() {
    let fixture = Rules::new();
    let [a, b] = ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"].map(|at| first_id_at(time(at)));
    let row = |id: Uuid, number: &str| fixture.invoice_row(json!({ "id": id, "invoice_number": number, "total": 5 }));
    assert_eq!(row(a, "A"), Ok(Imported::Added));
    assert_eq!(row(a, "A"), Ok(Imported::Unchanged));
    assert_eq!(differs(row(a, "B")), ["invoice_number"]);
    assert_eq!(refusal(row(b, "A")), "not_allowed");
    assert_eq!(row(b, "B"), Ok(Imported::Added));
    assert_eq!(refusal(row(b, "A")), "not_allowed");
    assert_eq!(fixture.get::<Invoice>(b.into()).unwrap().status, InvoiceStatus::Draft);
}

/// The members of a row of an account.
pub(super) fn restored(kind: &str, at: &str, fields: Value) -> Value {
    let mut row = json!({
        "kind": kind, "id": first_id_at(time(at)), "created_at": at, "updated_at": at,
    });
    row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    row
}

#[test]
fn records_of_an_account_are_restored_in_the_order_of_their_changes() {
    let fixture = Rules::new();
    let put = |row: Value| fixture.put::<AccountRecord>(row, 0, PLAIN);
    let contact = first_id_at(time("2020-01-01T00:00:00Z"));
    let mut ada = restored("contacts", "2020-01-01T00:00:00Z", json!({ "email": "ada@example.com" }));
    let quote = |at: &str| {
        let fields = json!({ "quote_number": "QUO-0007", "contact_id": contact, "status": "sent", "total": 5, "currency": "JPY" });
        restored("quotes", at, fields)
    };
    assert_eq!(put(quote("2020-01-02T00:00:00Z")), Err(Error::ReferenceNotFound("contact_id")));
    assert_eq!(put(ada.clone()), Ok(Imported::Added));
    assert_eq!(put(ada.clone()), Ok(Imported::Unchanged));
    assert_eq!(put(quote("2020-01-02T00:00:00Z")), Ok(Imported::Added));
    // A later version replaces the earlier one, which is then refused.
    ada["updated_at"] = json!("2020-01-03T00:00:00Z");
    ada["deleted_at"] = json!("2020-01-03T00:00:00Z");
    assert_eq!(put(ada.clone()), Ok(Imported::Updated));
    ada["updated_at"] = json!("2020-01-01T00:00:00Z");
    assert!(matches!(put(ada.clone()), Err(Error::NotAllowed(_))));
    // Its email is free, and a deleted contact can be referred to.
    let zoe = restored("contacts", "2020-01-04T00:00:00Z", json!({ "email": "ADA@example.com" }));
    assert_eq!(put(zoe), Ok(Imported::Added));
    let bob = restored("contacts", "2020-01-05T00:00:00Z", json!({ "email": "ada@example.com" }));
    assert!(matches!(put(bob), Err(Error::EmailTaken { .. })));
    let booking = json!({ "contact_id": contact, "start_time": "2020-01-02T00:00:00Z", "end_time": "2020-01-02T01:00:00Z", "status": "no_show" });
    assert_eq!(put(restored("bookings", "2020-01-02T00:00:00Z", booking)), Ok(Imported::Added));
    assert_eq!(fixture.new_kinds(), "");
}

#[test]
fn restored_records_keep_the_rules() {
    let fixture = Rules::new();
    let at = "2020-01-01T00:00:00Z";
    for (kind, fields, expected) in [
        ("people", json!({}), "kind invalid_enum"),
        ("contacts", json!({ "email": "x" }), "email invalid_format"),
        ("contacts", json!({ "name": "x" }), "name unknown_field"),
        ("contacts", json!({ "updated_at": "2019-01-01T00:00:00Z" }), "updated_at out_of_range"),
        ("contacts", json!({ "updated_at": "9999-01-01T00:00:00Z" }), "updated_at out_of_range"),
        ("contacts", json!({ "created_at": "2019-01-01T00:00:00Z" }), "created_at out_of_range"),
        (
            "quotes",
            json!({ "quote_number": "QUO-0001", "status": "sent", "total": 0.5, "currency": "JPY" }),
            "total out_of_range",
        ),
        (
            "invoices",
            json!({ "invoice_number": "INV-0001", "status": "paid", "total": 5, "amount_paid": 6, "currency": "AUD" }),
            "amount_paid out_of_range",
        ),
        ("bookings", json!({ "start_time": at, "end_time": at, "status": "no_show" }), "end_time out_of_range"),
        (
            "jobs",
            json!({ "job_number": "JOB-0001", "title": "x", "status": "quoted", "actual_total": 0.001 }),
            "actual_total out_of_range",
        ),
    ] {
        let refused = fixture.put::<AccountRecord>(restored(kind, at, fields.clone()), 0, PLAIN);
        assert_eq!(refusal(refused), expected, "{kind} {fields}");
    }
}

/// The report of a batch is stored, so a row with many failing fields must not make it many times as long as the request.
#[test]
fn the_report_names_the_first_ten_failing_fields_of_a_row() {
    let fixture = Rules::new();
    let fields: serde_json::Map<String, Value> = (0..50).map(|number| (format!("f{number:02}"), json!(1))).collect();
    let row = svc_core::platform::ImportedRow::from(fixture.contact_row(Value::Object(fields)));
    let problem = row.problem.unwrap();
    assert_eq!((problem.errors.len(), problem.field.as_ref()), (10, Some(&problem.errors[0].field)));
    assert!(serde_json::to_vec(&problem).unwrap().len() < 1_500, "{problem:?}");
}

/// Rows of 2,000 bytes make a report of at most as many.
#[test]
fn the_report_of_a_row_is_no_longer_than_a_long_row() {
    let fixture = Rules::new();
    for (fields, length) in [(10, 190), (2, 950), (1, 1_900), (100, 18), (300, 5)] {
        let name = |number: usize| (format!("{number:x>length$}"), json!(1));
        let row = fixture.contact_row(Value::Object((0..fields).map(name).collect()));
        let problem = svc_core::platform::ImportedRow::from(row).problem.unwrap();
        let report = serde_json::to_vec(&problem).unwrap().len();
        assert!(report < 2_000 && !problem.errors.is_empty(), "{fields} of {length}: {report}");
    }
}
