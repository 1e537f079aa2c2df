use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use svc_core::resources::contacts::Contact;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::delivery::{attempt, attempt_when_due};
use super::harness::{Session, UNKNOWN_ID};

#[test]
fn webhooks_are_listed_and_shown() {
    let mut session = Session::new();
    session.account();
    let account = session.account();
    session.run(&["webhook", "list", "--account", &account]).run(&["webhook", "list", "--account", &account, "--json"]);
    let some =
        r#"{"url": "https://example.com/hook", "events": ["invoice.paid", "invoice.sent"], "description": "Shop"}"#;
    let shop: WebhookSubscription = session.create(&account, some);
    let _: WebhookSubscription = session.create(&account, r#"{"url": "https://example.org/", "events": ["*"]}"#);
    let shop = shop.id.to_string();
    session
        .run(&["webhook", "list", "--account", &account])
        .run(&["webhook", "show", &shop])
        .run(&["webhook", "list", "--account", &account, "--json"])
        .run(&["webhook", "show", &shop, "--json"])
        .assert("webhook");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    session
        .run(&["webhook", "list"])
        .run(&["webhook", "list", "--account", UNKNOWN_ID])
        .run(&["webhook", "show", "hook"])
        .run(&["webhook", "show", UNKNOWN_ID])
        .run(&["webhook", "enable"])
        .run(&["webhook", "enable", UNKNOWN_ID])
        .assert("webhook_refused");
}

#[test]
fn a_paused_webhook_can_be_enabled() {
    let mut session = Session::new();
    let account = session.account();
    let some = r#"{"url": "https://example.com/hook", "events": ["contact.created"]}"#;
    let hook = session.create::<WebhookSubscription>(&account, some).id.to_string();
    session.contact(&account);
    for _ in 0..10 {
        attempt(&session, 500, vec![Duration::ZERO; 20]);
    }
    session
        .run(&["webhook", "list", "--account", &account])
        .run(&["delivery", "list", "--account", &account])
        .run(&["webhook", "enable", &hook])
        .run(&["webhook", "enable", &hook, "--json"])
        .run(&["webhook", "show", &hook]);
    let held = session.json(&["delivery", "list", "--account", &account, "--status", "held"]);
    session.id(&["delivery", "replay", held[0]["id"].as_str().unwrap()]);
    session.run(&["webhook", "enable", &hook]).assert("webhook_enable");
}

#[test]
fn a_rotated_secret_is_shown_once() {
    let mut session = Session::new();
    let account = session.account();
    let hook =
        session.create::<WebhookSubscription>(&account, r#"{"url": "https://example.com/hook", "events": ["*"]}"#);
    let (id, first) = (hook.id.to_string(), hook.secret.reveal().to_owned());
    session
        .run(&["webhook", "rotate-secret", &id])
        .run(&["webhook", "rotate-secret", &id, "--overlap", "soon"])
        .run(&["webhook", "rotate-secret", UNKNOWN_ID])
        .run(&["webhook", "rotate-secret", &id, "--json"])
        .run(&["webhook", "rotate-secret", &id, "--finish", "--overlap", "1h"])
        .run(&["webhook", "rotate-secret", &id, "--finish"])
        .run(&["webhook", "rotate-secret", &id, "--finish", "--json"])
        .assert("webhook_rotate");
    let rotated = session.json(&["webhook", "rotate-secret", &id, "--overlap", "0s"]);
    let secret = rotated["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == first.len() && secret != first);
    let shown = session.output(&["webhook", "show", &id, "--json"]);
    assert!(!String::from_utf8(shown.stdout).unwrap().contains("whsec_"));
}

/// Runs and records `svc webhook test` while a simulated sender makes the attempt.
fn run_test_command(session: &mut Session, args: &[&str], status: i32) {
    let mut program = session.program(args);
    let running = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    attempt_when_due(session, status, vec![Duration::from_secs(100)]);
    session.record(args, &running.wait_with_output().unwrap());
}

#[test]
fn a_test_shows_the_result_of_its_first_attempt() {
    let mut session = Session::new();
    let account = session.account();
    let stays = r#"{"url": "https://example.com/hook", "events": ["stay.created", "stay.cancelled"]}"#;
    let stays = session.create::<WebhookSubscription>(&account, stays).id.to_string();
    let all = session.create::<WebhookSubscription>(&account, r#"{"url": "https://example.org/", "events": ["*"]}"#);
    let all = all.id.to_string();
    run_test_command(&mut session, &["webhook", "test", &stays], 200);
    run_test_command(&mut session, &["webhook", "test", &all, "--json"], 200);
    run_test_command(&mut session, &["webhook", "test", &all, "--event", "stay.cancelled"], 503);
    run_test_command(&mut session, &["webhook", "test", &stays, "--event", "stay.cancelled", "--json"], -1);
    session.run(&["delivery", "list", "--account", &account]).assert("webhook_test");
}

#[test]
fn a_test_without_a_server_stays_pending() {
    let mut session = Session::new();
    let account = session.account();
    let hook =
        session.create::<WebhookSubscription>(&account, r#"{"url": "https://example.com/hook", "events": ["*"]}"#);
    let hook = hook.id.to_string();
    session
        .run(&["webhook", "test", &hook, "--timeout", "200ms"])
        .run(&["webhook", "test", "--json", &hook, "--timeout", "200ms"])
        .run(&["delivery", "list", "--account", &account])
        .assert("webhook_test_pending");
}

#[test]
fn invalid_tests_are_refused() {
    let mut session = Session::new();
    let account = session.account();
    let hook = session.create::<WebhookSubscription>(
        &account,
        r#"{"url": "https://example.com/hook", "events": ["contact.created"]}"#,
    );
    let hook = hook.id.to_string();
    session
        .run(&["webhook", "test"])
        .run(&["webhook", "test", UNKNOWN_ID])
        .run(&["webhook", "test", &hook, "--event", "contact.creatd"])
        .run(&["webhook", "test", &hook, "--event", "stay.created"])
        .run(&["webhook", "test", &hook, "--timeout", "0s"]);
    session.contact(&account);
    for _ in 0..10 {
        attempt(&session, 500, vec![Duration::ZERO; 20]);
    }
    session.run(&["webhook", "test", &hook]).assert("webhook_test_refused");
    let listed: Value = session.json(&["delivery", "list", "--account", &account]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "a refused test sends nothing");
}

#[test]
fn statistics_count_attempts_and_deliveries() {
    let mut session = Session::new();
    let account = session.account();
    let stats = ["webhook", "stats", "--account", &account, "--since"];
    session.run(&stats[..4]).run(&[&stats[..], &["1h", "--json"]].concat());
    let _: WebhookSubscription =
        session.create(&account, r#"{"url": "https://example.org/", "events": ["stay.created"]}"#);
    let hook = r#"{"url": "https://example.com/hook", "events": ["contact.created"]}"#;
    let _: WebhookSubscription = session.create(&account, hook);
    session.contact(&account);
    attempt(&session, 500, vec![Duration::ZERO]);
    attempt(&session, 0, vec![Duration::ZERO; 20]);
    attempt(&session, 200, vec![]);
    let another = r#"{"email": "zoe@example.com"}"#;
    let _: Contact = session.create(&account, another);
    session
        .run(&[&stats[..], &["1h"]].concat())
        .run(&[&stats[..], &["2020-01-01T00:00:00Z", "--json"]].concat())
        .run(&[&stats[..], &["2099-01-01T00:00:00Z"]].concat())
        .run(&["webhook", "stats"])
        .run(&["webhook", "stats", "--account", UNKNOWN_ID])
        .run(&[&stats[..], &["soon"]].concat())
        .assert("webhook_stats");
}

#[test]
fn a_filter_is_tried_on_an_event() {
    let mut session = Session::new();
    let stay = "stay.json";
    session.file(stay, r#"{"id": "stay-1", "total": 250, "guest": {"city": "Perth"}}"#);
    let filter = "data.guest.city == \"Perth\" and not (data.total < 100)";
    session
        .run(&["webhook", "filter-test", "--filter", filter, "--event", "stay.created", "--data", stay])
        .run(&["webhook", "filter-test", "--filter", "data.total > 250", "--data", stay, "--json"])
        .run(&["webhook", "filter-test", "--filter", "event == \"invoice.paid\"", "--event", "invoice.paid"])
        .run(&["webhook", "filter-test", "--filter", "data.total = 250"])
        .run(&["webhook", "filter-test", "--filter", "data.total > 250", "--data", "/nowhere.json"])
        .run(&["webhook", "filter-test"])
        .assert("webhook_filter");
}

/// What a webhook asks for is set, shown without its secrets, and cleared.
#[test]
fn a_webhook_asks_for_more() {
    let mut session = Session::new();
    let account = session.account();
    let webhook: WebhookSubscription = session.create(&account, r#"{"url": "https://example.com/", "events": ["*"]}"#);
    let id = webhook.id.to_string();
    session
        .run(&[
            "webhook",
            "update",
            &id,
            "--header",
            "X-Team: ledger",
            "--header",
            "X-Key: s3cret",
            "--auth",
            "basic svc:s3cret",
            "--filter",
            "data.total >= 100",
            "--payload",
            "thin",
            "--max-per-second",
            "10",
            "--max-in-flight",
            "2",
            "--timeout",
            "5s",
            "--retry-schedule",
            "1m,10m",
            "--ordering",
            "record",
        ])
        .run(&["webhook", "show", &id, "--json"])
        .run(&["webhook", "update", &id, "--clear", "header,auth,filter,retry-schedule", "--payload", "contract"])
        .run(&["webhook", "update", &id, "--timeout", "31s"])
        .run(&["webhook", "update", &id, "--header", "Host: example.com"])
        .run(&["webhook", "update", &id, "--filter", "data.total = 1"])
        .assert("webhook_options");
}

/// Certificates and keys come from files, and neither is shown.
#[test]
fn a_webhook_has_certificates() {
    let mut session = Session::new();
    let account = session.account();
    let webhook: WebhookSubscription = session.create(&account, r#"{"url": "https://example.com/", "events": ["*"]}"#);
    let id = webhook.id.to_string();
    let made = rcgen::generate_simple_self_signed(["svc.example.com".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    for (name, pem) in [("client.pem", &certificate), ("client.key", &key), ("ca.pem", &certificate)] {
        std::fs::write(session.folder().join(name), pem).unwrap();
    }
    let update = ["webhook", "update", &id];
    let pair = ["--client-certificate", "client.pem", "--client-key", "client.key"];
    session
        .run(&[&update[..], &pair, &["--certificate-authority", "ca.pem"]].concat())
        .run(&["webhook", "show", &id])
        .run(&[&update[..], &["--clear", "client-certificate", "--certificate-authority", ""]].concat())
        .run(&[&update[..], &pair[..2]].concat())
        .run(&[&update[..], &pair[2..]].concat())
        .run(&[&update[..], &pair[..3], &["nowhere.key"]].concat())
        .run(&[&update[..], &pair[..3], &["ca.pem"]].concat())
        .run(&[&update[..], &["--certificate-authority", "client.key"]].concat())
        .assert("webhook_certificates");
}

#[test]
fn the_events_of_a_webhook_go_to_a_broker() {
    let session = Session::new();
    session.account();
    let create = ["webhook", "create", "--to", "nats://svc:hidden@nats.example.com/svc?create=EVENTS"];
    let with = |more: &[&'static str]| [&create[..], more].concat();
    let whole = with(&["--events", "invoice.paid,invoice.sent", "--filter", "data.total >= 100"]);
    if crate::harness::text(&session.output(&whole).stderr).contains("build svc-server with the feature `nats`") {
        // The server of the test was built without, and says so. Beside the database nobody can tell.
        return;
    }
    let created = session.json(&whole);
    assert_eq!(created["url"], "nats://nats.example.com/svc");
    assert!(!created.to_string().contains("hidden") && created["secret"].is_null(), "{created}");
    let id = created["id"].as_str().unwrap();
    for (command, reason) in [
        (with(&["--events", "*", "--url", "https://example.com"]), "cannot be used with"),
        (with(&["--events", "*", "--timeout", "5s"]), "cannot be used with"),
        (vec!["webhook", "create", "--to", "https://example.com", "--events", "*"], "must begin with one of nats"),
        (vec!["webhook", "create", "--events", "*"], "--url"),
        (vec!["webhook", "test", id], "no deliveries, tests or secrets"),
        (vec!["webhook", "rotate-secret", id], "no deliveries, tests or secrets"),
        (vec!["delivery", "replay", "--subscription", id, "--since", "1h"], "no deliveries, tests or secrets"),
        (vec!["webhook", "update", id, "--max-per-second", "5"], "go to a broker"),
    ] {
        let output = session.output(&command);
        let error = crate::harness::text(&output.stderr);
        assert!(
            !output.status.success() && error.contains(reason) && !error.contains("hidden"),
            "{command:?}: {error}"
        );
    }
    session.json(&["webhook", "disable", id]);
    session.json(&["webhook", "enable", id]);
    session.json(&["webhook", "delete", id]);
}
