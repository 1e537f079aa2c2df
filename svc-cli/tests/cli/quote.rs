use svc_core::resources::crud;
use svc_core::resources::quotes::{Quote, QuoteStatus, QuoteUpdate};
use svc_core::values::{Patch, TenantId, parse_uuid};

use super::harness::{Session, UNKNOWN_ID};

impl Session {
    /// Creates a quote of 1500 with this status and returns its id.
    pub(crate) fn quote(&self, account: &str, contact: &str, status: QuoteStatus) -> String {
        let body = format!(r#"{{"contact_id": "{contact}", "total": 1500, "valid_until": "2099-04-13"}}"#).leak();
        let id = self.create::<Quote>(account, body).id;
        let account = TenantId(parse_uuid(account).unwrap());
        let change = QuoteUpdate { status: Patch::Set(status), total: Patch::Keep, valid_until: Patch::Keep };
        self.write((account, id, change), async |tx, (account, id, change)| {
            crud::update::<Quote>(tx, *account, *id, change.clone()).await
        });
        id.to_string()
    }
}

#[test]
fn quotes_are_shown_accepted_and_declined() {
    let mut session = Session::new();
    session.account();
    let account = session.account();
    let contact = session.contact(&account);
    let sent = session.quote(&account, &contact, QuoteStatus::Sent);
    let viewed = session.quote(&account, &contact, QuoteStatus::Viewed);
    let draft = session.quote(&account, &contact, QuoteStatus::Draft);
    let expired = session.quote(&account, &contact, QuoteStatus::Expired);
    let others = [QuoteStatus::Sent, QuoteStatus::Viewed].map(|status| session.quote(&account, &contact, status));
    session
        .run(&["quote", "show", &sent])
        .run(&["quote", "accept", &sent])
        .run(&["quote", "accept", &sent])
        .run(&["quote", "decline", &sent])
        .run(&["quote", "decline", &viewed, "--json"])
        .run(&["quote", "accept", &draft])
        .run(&["quote", "accept", &expired])
        .run(&["quote", "show", &viewed, "--json"])
        .run(&["quote", "accept", &others[0], "--json"])
        .run(&["quote", "decline", &others[1]])
        .run(&["quote", "accept", UNKNOWN_ID])
        .run(&["quote", "decline", UNKNOWN_ID])
        .run(&["quote", "show", UNKNOWN_ID])
        .run(&["quote", "show", "QUO-0001"])
        .assert("quote");
}

#[test]
fn a_quote_becomes_a_job_and_an_invoice_and_is_paid() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    session.quote(&account, &contact, QuoteStatus::Sent);
    session.quote(&account, &contact, QuoteStatus::Accepted);
    session.quote(&account, &contact, QuoteStatus::Draft);
    session
        .run(&["quote", "convert", "QUO-0001"])
        .run(&["quote", "convert", "QUO-0001"])
        .run(&["quote", "convert", "QUO-0002", "--title", "New roof", "--json"])
        .run(&["quote", "convert", "QUO-0003"])
        .run(&["job", "invoice", "JOB-0001"])
        .run(&["job", "invoice", "JOB-0001"])
        .run(&["job", "invoice", "JOB-0002", "--total", "480", "--due", "2026-05-01", "--json"])
        .run(&["invoice", "pay", "INV-0001", "--amount", "500", "--method", "card", "--reference", "Statement 17"])
        .run(&["invoice", "refund", "INV-0001", "--amount", "20", "--yes"])
        .run(&["payment", "list"])
        .run(&["payment", "list", "--invoice", "INV-0001", "--limit", "1", "--json"])
        .run(&["payment", "list", "--invoice", "INV-0002"])
        .run(&["payment", "list", "--since", "2027-01-01"])
        .assert("conversions");
}
