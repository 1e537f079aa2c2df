use svc_core::resources::crud;
use svc_core::resources::quotes::{Quote, QuoteStatus, QuoteUpdate};
use svc_core::values::{Patch, TenantId, parse_uuid};

use super::harness::{Session, UNKNOWN_ID};

impl Session {
    /// Creates a quote of 1500 with this status and returns its id.
    fn quote(&self, account: &str, contact: &str, status: QuoteStatus) -> String {
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
