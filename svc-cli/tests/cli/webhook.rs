use svc_core::webhooks::Subscription;

use crate::harness::{NOBODY, Session};

#[test]
fn listed_and_shown() {
    let mut session = Session::new();
    session.tenant();
    let tenant = session.tenant();
    session.run(&["webhook", "list", "--tenant", &tenant]).run(&["webhook", "list", "--tenant", &tenant, "--json"]);
    let some =
        r#"{"url": "https://example.com/hook", "events": ["invoice.paid", "invoice.sent"], "description": "Shop"}"#;
    let shop: Subscription = session.create(&tenant, some);
    let _: Subscription = session.create(&tenant, r#"{"url": "https://example.org/", "events": ["*"]}"#);
    let shop = shop.id.to_string();
    session
        .run(&["webhook", "list", "--tenant", &tenant])
        .run(&["webhook", "show", &shop])
        .run(&["webhook", "list", "--tenant", &tenant, "--json"])
        .run(&["webhook", "show", &shop, "--json"])
        .assert("webhook");
}

#[test]
fn refused() {
    let mut session = Session::new();
    session
        .run(&["webhook", "list"])
        .run(&["webhook", "list", "--tenant", NOBODY])
        .run(&["webhook", "show", "hook"])
        .run(&["webhook", "show", NOBODY])
        .assert("webhook_refused");
}
