use svc_core::resources::crud;
use svc_core::resources::quotes::{Quote, QuoteStatus, QuoteUpdate};
use svc_core::values::{Patch, TenantId, parse_uuid};

use crate::harness::{NOBODY, Session};

impl Session {
    /// A quote of 1500 that has come so far.
    fn quote(&self, tenant: &str, contact: &str, status: QuoteStatus) -> String {
        let body = format!(r#"{{"contact_id": "{contact}", "total": 1500, "valid_until": "2099-04-13"}}"#).leak();
        let id = self.create::<Quote>(tenant, body).id;
        let tenant = TenantId(parse_uuid(tenant).unwrap());
        let change = QuoteUpdate { status: Patch::Set(status), total: Patch::Keep, valid_until: Patch::Keep };
        self.write(move |tx| Box::pin(crud::update::<Quote>(tx, tenant, id, change.clone())));
        id.to_string()
    }
}

#[test]
fn the_client_answers() {
    let mut session = Session::new();
    session.tenant();
    let tenant = session.tenant();
    let contact = session.contact(&tenant);
    let sent = session.quote(&tenant, &contact, QuoteStatus::Sent);
    let viewed = session.quote(&tenant, &contact, QuoteStatus::Viewed);
    let draft = session.quote(&tenant, &contact, QuoteStatus::Draft);
    let expired = session.quote(&tenant, &contact, QuoteStatus::Expired);
    let others = [QuoteStatus::Sent, QuoteStatus::Viewed].map(|status| session.quote(&tenant, &contact, status));
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
        .run(&["quote", "accept", NOBODY])
        .run(&["quote", "decline", NOBODY])
        .run(&["quote", "show", NOBODY])
        .run(&["quote", "show", "QUO-0001"])
        .assert("quote");
}
