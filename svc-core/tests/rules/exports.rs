//! Exports: every record once and after its contact, and cursors that are valid for one export alone.

use serde_json::json;
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::exports;
use svc_core::pages::{Limit, Since};
use svc_core::platform::{ExportPage, ExportParams};
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::jobs::Job;
use svc_core::resources::kinds::AccountRecord;
use svc_core::resources::quotes::Quote;
use svc_core::values::Timestamp;

use super::{Rules, account};

impl Rules {
    fn numbered_contact(&self, number: usize) -> ContactId {
        self.create::<Contact>(json!({ "email": format!("c{number}@example.com") })).unwrap().id
    }

    fn quote_for(&self, contact: ContactId) {
        self.create::<Quote>(json!({ "contact_id": contact, "total": 1 })).unwrap();
    }

    fn export(&self, limit: u32, since: Option<Since>, cursor: Option<String>) -> Result<ExportPage, Error> {
        let (params, tenant) = (ExportParams { since, limit: Limit::new(limit), cursor }, self.tenant);
        self.write((tenant, params), async |tx, (tenant, params)| exports::page(tx, *tenant, params).await)
    }
}

#[test]
fn every_record_comes_once_and_after_its_contact_while_records_are_made() {
    for limit in [1, 2, 3, 5, 200] {
        let fixture = Rules::new();
        let mut numbers = 0..;
        for number in numbers.by_ref().take(3) {
            let contact = fixture.numbered_contact(number);
            fixture.quote_for(contact);
            fixture.create::<Job>(json!({ "contact_id": contact, "title": "Fix tap" })).unwrap();
        }
        let (mut exported, mut cursor) = (Vec::new(), None);
        loop {
            let page = fixture.export(limit, None, cursor).unwrap();
            assert!(page.data.len() <= limit as usize);
            exported.extend(page.data);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            // A new contact with a record of the type that is read at the moment.
            if exported.len() < 12 {
                fixture.quote_for(fixture.numbered_contact(numbers.next().unwrap()));
            }
        }
        let mut contacts = Vec::new();
        for record in &exported {
            match record {
                AccountRecord::Contact(contact) => contacts.push(contact.id),
                AccountRecord::Quote(quote) => assert!(quote.contact_id.is_some_and(|id| contacts.contains(&id))),
                AccountRecord::Job(job) => assert!(job.contact_id.is_some_and(|id| contacts.contains(&id))),
                other => panic!("{other:?}"),
            }
        }
        let texts: std::collections::BTreeSet<String> =
            exported.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        assert_eq!(texts.len(), exported.len(), "no record comes twice");
        assert!(exported.len() >= 9, "{}", exported.len());
    }
}

#[test]
fn a_cursor_is_valid_for_its_account_and_since_and_as_a_whole() {
    let fixture = Rules::new();
    for number in 0..3 {
        fixture.numbered_contact(number);
    }
    let since = |micros| Some(Since(Timestamp::from_micros(micros)));
    let cursor = fixture.export(1, since(7), None).unwrap().next_cursor.unwrap();
    let other = fixture.export(2, since(7), None).unwrap().next_cursor.unwrap();
    assert_eq!(fixture.export(1, since(7), Some(cursor.clone())).unwrap().data.len(), 1);
    let mixed = |cursor: &str, other: &str| {
        format!("{}.{}", cursor.rsplit_once('.').unwrap().0, other.rsplit_once('.').unwrap().1)
    };
    let wrong = [
        String::new(),
        "x".to_owned(),
        cursor.replace("invoices", "jobs"),
        cursor.replace("invoices", "people"),
        format!("{cursor}."),
        mixed(&cursor, &other),
    ];
    for wrong in wrong {
        assert_eq!(fixture.export(1, since(7), Some(wrong.clone())), Err(Error::InvalidCursor), "{wrong}");
    }
    for since in [None, since(8)] {
        assert_eq!(fixture.export(1, since, Some(cursor.clone())), Err(Error::InvalidCursor));
    }
    let other = fixture.write((), async |tx, ()| tenants::create(tx, account()).await).unwrap().id;
    let other = Rules { fixture: fixture.of(other), ..Rules::new() };
    assert_eq!(other.export(1, since(7), Some(cursor)), Err(Error::InvalidCursor));
}
