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
    let mut with_empty_variable = session.program(&["export", "contacts"]);
    let output = with_empty_variable.env("SVC_TENANT", "").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "no account is named");
    assert!(text(&output.stderr).contains("has 2 accounts; name one"), "{}", text(&output.stderr));
    for _ in 0..9 {
        session.account();
    }
    let output = session.output(&["key", "list"]);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 12), "{stderr}");
    assert!(stderr.contains("has several accounts") && stderr.ends_with("  …\n"), "{stderr}");
}

#[test]
fn a_whole_id_tells_the_account() {
    let mut session = Session::new();
    let (account, other) = (session.account(), session.account());
    let contact = session.contact(&account);
    session.contact(&other);
    let in_account = |args: &[&str]| session.id(&[args, &["--account", &account]].concat());
    let booking = in_account(&[
        "booking",
        "create",
        "--contact",
        &contact,
        "--service-name",
        "Service",
        "--start",
        "2099-03-14T09:00:00Z",
    ]);
    let job = in_account(&["job", "create", "--title", "Boiler"]);
    let webhook = in_account(&["webhook", "create", "--url", "https://example.com/hook", "--events", "*"]);
    let event = in_account(&["trigger", "invoice.paid"]);
    for (name, id) in
        [("contact", &contact), ("booking", &booking), ("job", &job), ("event", &event), ("webhook", &webhook)]
    {
        assert_eq!(session.id(&[name, "show", id]), *id, "{name}");
        let opened = session.json(&["open", id, "--no-sign-in"]);
        assert!(opened["url"].as_str().unwrap().ends_with(id.as_str()), "{opened}");
    }
    let invoice = session.json(&["invoice", "create", "--contact", &contact, "--total", "5"]);
    assert_eq!(invoice["contact_id"], contact.as_str());
    assert_eq!(session.json(&["delivery", "list", "--subscription", &webhook]).as_array().unwrap().len(), 2);
    let key = in_account(&["key", "create", "--scopes", "read"]);
    assert_eq!(session.json(&["request", "list", "--key", &key]).as_array().unwrap().len(), 0);
    session
        .run(&["contact", "show", UNKNOWN_ID])
        .run(&["contact", "show", "ffffffffffff"])
        .run(&["invoice", "create", "--contact", UNKNOWN_ID, "--total", "5"])
        .run(&["open", UNKNOWN_ID])
        .assert("ids_of_accounts");
    // An import gives records of two accounts the same id.
    session.file("people.csv", format!("id,email\n{contact},ada2@example.com\n"));
    session.json(&["import", "contacts", "people.csv", "--account", &other]);
    let output = session.output(&["contact", "show", &contact]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("exists in 2 accounts; name one of them"), "{output:?}");
    // Where there are many accounts, they are not all asked.
    for _ in 0..49 {
        session.account();
    }
    let output = session.output(&["job", "show", &job]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(session.id(&["webhook", "show", &webhook]), webhook);
    assert_eq!(session.id(&["job", "show", &job, "--account", &account]), job);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let session = Session::new();
    let account = session.account();
    for args in [&["contact", "list"][..], &["invoice", "overdue"]] {
        let mut program = session.program(args);
        for name in ["SVC_TENANT", "SVC_PROFILE", "SVC_CA_FILE", "SVC_EVENT_KINDS"] {
            program.env(name, "");
        }
        let output = program.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    }
    let output = session.output(&["contact", "list", "--account", ""]);
    assert_eq!(output.status.code(), Some(2), "an empty option is refused");
    assert_eq!(session.id(&["account", "show", &account]), account);
}

#[test]
fn an_id_that_several_accounts_begin_with_is_refused() {
    let session = Session::new();
    let [first, _] = [session.account(), session.account()];
    let output = session.output(&["account", "show", &first[..5]]);
    assert_eq!(output.status.code(), Some(4));
    let part = &first[..5];
    let message = format!("error: 2 accounts have an id that begins or ends with {part}; give more of the id.\n");
    assert_eq!(text(&output.stderr), message);
}

#[test]
fn a_date_begins_in_the_time_zone_of_the_account() {
    let session = Session::new();
    let account = session.id(&["account", "create", "--name", "Harbour", "--time-zone", "Australia/Sydney"]);
    session.contact(&account);
    let webhook = session.id(&["webhook", "create", "--url", "https://example.com/hook", "--events", "*"]);
    let statistics = session.json(&["webhook", "stats", "--since", "2026-03-15"]);
    assert_eq!(statistics[0]["since"], "2026-03-14T13:00:00.000000Z");
    let replay = ["delivery", "replay", "--subscription", &webhook, "--since", "2026-07-01", "--until", "2026-07-02"];
    let replay = session.json(&replay);
    assert_eq!(replay["since"], "2026-06-30T14:00:00.000000Z");
    assert_eq!(replay["until"], "2026-07-01T14:00:00.000000Z");
    for (command, is_since) in [
        (&["contact", "list"][..], "--updated-since"),
        (&["audit", "list"], "--since"),
        (&["export", "contacts"], "--since"),
    ] {
        let count = |date| session.json(&[command, &[is_since, date]].concat()).as_array().unwrap().len();
        assert!(count("2020-01-01") > 0, "{command:?}");
        assert_eq!(count("2099-01-01"), 0, "{command:?}");
    }
    assert_eq!(session.json(&["delivery", "list", "--until", "2020-01-01"]).as_array().unwrap().len(), 0);
    let output = session.output(&["contact", "list", "--updated-since", "2026-02-30"]);
    assert_eq!(output.status.code(), Some(2));
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
    let output = create(&id[25..]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("there are too many contacts to look for one that ends with it"),
        "{output:?}"
    );
    assert_eq!(create(&id[..30]).status.code(), Some(0));
    assert_eq!(create(&id[24..]).status.code(), Some(0), "the end that tables show is that of one id");
}
