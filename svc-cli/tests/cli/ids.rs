//! Which account a command works on, and which record a part of an id stands for.

use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::values::WebhookUrl;
use svc_core::webhooks::operational;

use super::harness::{Session, UNKNOWN_ID, text};

#[test]
fn the_only_account_need_not_be_named() {
    let mut session = Session::new();
    session.run(&["webhook", "list"]);
    let first = session.account();
    let contact = session.contact(&first);
    session
        .run(&["key", "create", "--scopes", "read"])
        .run(&["invoice", "create", "--contact", &contact, "--total", "10"])
        .run(&["delivery", "list"]);
    let second = session.account();
    session
        .run(&["delivery", "list"])
        .run(&["export", "contacts"])
        .run(&["delivery", "list", "--account", &second])
        .run(&["delivery", "list", "--account", UNKNOWN_ID])
        .run(&["delivery", "list", "--account", "INV-0001"])
        .assert("accounts_named");
    let exported = |account: &str, args: &[&str]| {
        let mut program = session.program(&[&["export", "contacts"], args].concat());
        text(&program.env("SVC_TENANT", account).output().unwrap().stdout).lines().count()
    };
    assert_eq!((exported(&first, &[]), exported(&second, &[])), (1, 0));
    assert_eq!(exported(&second, &["--account", &first]), 1, "the option is stronger than the variable");
    assert_eq!(exported(&first[first.len() - 12..], &[]), 1, "the end of the id is enough");
    for _ in 0..9 {
        session.account();
    }
    let output = session.output(&["key", "list"]);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 12), "{stderr}");
    assert!(stderr.contains("has several accounts") && stderr.ends_with("  …\n"), "{stderr}");
}

#[test]
fn the_account_of_operational_events_is_meant_only_where_it_is_named() {
    let session = Session::new();
    let account = session.account();
    session.with_store(async |store, _| {
        let url = WebhookUrl::parse("https://ops.example.com/hook").unwrap();
        operational::set_webhook(store, Some(&url)).await.unwrap();
    });
    session.contact(&account);
    assert_eq!(session.json(&["contact", "list"]).as_array().unwrap().len(), 1);
    let platform = PLATFORM_ACCOUNT.to_string();
    let webhooks = session.json(&["webhook", "list", "--account", &platform]);
    assert_eq!(webhooks[0]["url"], "https://ops.example.com/hook");
}

/// Ids whose order is that of their numbers, so that some have their beginning in common and some their end.
const IDS: [&str; 4] = [
    "0195a3c8-0000-7000-8000-00000000aaaa",
    "0195a3c8-0000-7100-8000-00000000bbbb",
    "0195a3c9-0000-7000-8000-00000000bbbb",
    "0195b3c9-0000-7000-8000-00000195a3c9",
];

#[test]
fn a_part_of_an_id_is_enough_if_one_record_has_it() {
    let mut session = Session::new();
    let account = session.account();
    let rows: String = IDS.iter().enumerate().map(|(at, id)| format!("{id},A-{at},100,sent\n")).collect();
    session.file("invoices.csv", format!("id,invoice_number,total,status\n{rows}"));
    session.json(&["import", "invoices", "invoices.csv"]);
    let found = |part: &str| {
        let output = session.output(&["invoice", "resend", part, "--json"]);
        let json: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        json.and_then(|invoice| IDS.iter().position(|id| invoice["id"] == *id))
    };
    for (part, index) in [("0195a3c8-0000-70", 0), ("0195a3c8-0000-71", 1), ("0195B", 3), ("aaaa", 0), ("95a3c9", 3)] {
        assert_eq!(found(part), Some(index), "{part}");
    }
    assert_eq!(found("0195a3c9"), Some(2), "a beginning goes before an end");
    for (at, id) in IDS.iter().enumerate() {
        assert_eq!(found(id), Some(at));
    }
    session
        .run(&["invoice", "resend", "0195a3c8"])
        .run(&["invoice", "resend", "bbbb"])
        .run(&["invoice", "resend", "cccc"])
        .run(&["invoice", "resend", "019"])
        .run(&["invoice", "resend", "A-0"]);
    session.account();
    session.run(&["invoice", "resend", "aaaa"]).run(&["invoice", "resend", "aaaa", "--account", &account]);
    session.run(&["invoice", "resend", IDS[0]]).assert("ids_in_part");
}

#[test]
fn parts_of_the_ids_of_keys_webhooks_and_deliveries_are_enough() {
    let session = Session::new();
    session.demo();
    let contact = session.json(&["export", "contacts"])[0]["id"].as_str().unwrap().to_owned();
    let end = |id: &str| id[24..].to_owned();
    let invoice = session.json(&["invoice", "create", "--contact", &end(&contact), "--total", "5"]);
    assert_eq!(invoice["contact_id"], contact.as_str());
    let key = session.id(&["key", "create", "--scopes", "read"]);
    assert_eq!(session.id(&["key", "show", &end(&key)]), key);
    assert_eq!(session.id(&["key", "show", &key[..20]]), key);
    let keys = session.json(&["key", "list"]);
    let account = keys[0]["tenant_id"].as_str().unwrap();
    assert_eq!(session.id(&["account", "show", &account[..8]]), account);
    assert_eq!(session.id(&["account", "show", &end(account)]), account);
}

#[test]
fn an_end_of_an_id_is_looked_for_among_ten_thousand_records() {
    let session = Session::new();
    session.account();
    let rows: String = (0..10_300).map(|n| format!("p{n}@example.com\n")).collect();
    session.file("people.csv", format!("email\n{rows}"));
    session.json(&["import", "contacts", "people.csv", "--no-events"]);
    let exported = session.output(&["export", "contacts"]);
    let newest: serde_json::Value = serde_json::from_str(text(&exported.stdout).lines().next().unwrap()).unwrap();
    let id = newest["id"].as_str().unwrap();
    let create = |contact: &str| session.output(&["invoice", "create", "--total", "5", "--contact", contact]);
    let output = create(&id[24..]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("there are too many contacts to look for one that ends with it"),
        "{output:?}"
    );
    assert_eq!(create(&id[..30]).status.code(), Some(0));
}
