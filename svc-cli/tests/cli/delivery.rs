use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use svc_core::accounts::clocks::advance_clock;
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::Tx;
use svc_core::values::{TenantId, parse_uuid};
use svc_core::webhooks::deliveries::{AttemptLog, RetrySchedule};
use svc_core::webhooks::engine::{self, Attempt, AttemptResult, Batch, InFlight, Policy};
use svc_core::webhooks::replays;
use svc_core::webhooks::subscriptions::{WebhookSubscription, WebhookUpdate};

use super::harness::{Session, UNKNOWN_ID, until};

/// Simulates an attempt at each delivery that is due, without a network. It results in `status`; failures are retried
/// according to `retry`.
pub(crate) fn attempt(session: &Session, status: i32, retry: Vec<Duration>) {
    assert!(attempt_if_due(session, status, retry));
}

/// Simulates attempts as soon as a delivery is due, which another process is about to create.
pub(crate) fn attempt_when_due(session: &Session, status: i32, retry: Vec<Duration>) {
    until("a delivery that is due", || attempt_if_due(session, status, retry.clone()).then_some(()));
}

fn attempt_if_due(session: &Session, status: i32, retry: Vec<Duration>) -> bool {
    session.write((retry, status), async |tx, (retry, status)| {
        let policy = Policy { retry: RetrySchedule::new(retry.clone()), ..Policy::default() };
        let started = start_attempts(tx, &policy).await?;
        let any_due = !started.is_empty();
        let now = tx.env().now();
        for attempt in started {
            let log = log(attempt.delivery.attempts, now, *status);
            let account = attempt.delivery.tenant_id;
            let outcome = AttemptResult { delivery: attempt.delivery, log, retry_after: None };
            engine::run_batch(tx, &policy, &Batch::outcomes_only(account, vec![outcome])).await?;
        }
        Ok(any_due)
    })
}

/// Starts all attempts that are due.
async fn start_attempts(tx: &mut dyn Tx, policy: &Policy) -> Result<Vec<Attempt>, Error> {
    let mut started = Vec::new();
    // The second poll finds deliveries that a replay made due.
    for _ in 0..2 {
        let due_work = engine::poll(tx).await?;
        for batch in InFlight::default().plan(policy, &due_work, BTreeMap::new()) {
            started.extend(engine::run_batch(tx, policy, &batch).await?.attempts);
        }
    }
    Ok(started)
}

fn log(attempt: u32, started_at: svc_core::values::Timestamp, status: i32) -> AttemptLog {
    let (error, response_body, remote_addr) = match status {
        0 => (Some("timeout: no answer within 10 s".to_owned()), None, Some("203.0.113.7:443".to_owned())),
        -1 => (Some("blocked: an address of the host is not public".to_owned()), None, None),
        200 => (None, Some("ok".to_owned()), Some("203.0.113.7:443".to_owned())),
        _ => (
            Some(format!("status: {status}")),
            Some("<h1>Down\u{1b}[2J</h1>\r\nback soon\n".to_owned()),
            Some("203.0.113.7:443".to_owned()),
        ),
    };
    let response_truncated = status == 503;
    AttemptLog {
        attempt,
        started_at,
        duration_ms: 42,
        status,
        error,
        cause: None,
        response_body,
        response_truncated,
        remote_addr,
    }
}

/// Creates a webhook for contacts, one for stays, and a delivery to each. Returns their ids in that order.
fn create_two_deliveries(session: &Session, account: &str) -> [String; 4] {
    let contacts = r#"{"url": "https://example.com/hook", "events": ["contact.created"]}"#;
    let stays = r#"{"url": "https://example.org/", "events": ["stay.created"]}"#;
    let [contacts, stays] =
        [contacts, stays].map(|body| session.create::<WebhookSubscription>(account, body).id.to_string());
    session.contact(account);
    let of_contact = session.json(&["delivery", "list", "--account", account])[0]["id"].as_str().unwrap().to_owned();
    session.file("stay.json", r#"{"id": "stay-1", "nights": 2, "rate": 119.50}"#);
    let emit = ["event", "emit", "--account", account, "--kind", "stay.created", "--data", "stay.json"];
    let of_stay = session.json(&emit)["deliveries"][0].as_str().unwrap().to_owned();
    [contacts, stays, of_contact, of_stay]
}

#[test]
fn output_for_people() {
    let mut session = Session::new();
    session.account();
    let account = session.account();
    let list = ["delivery", "list", "--account", &account];
    session.run(&list);
    let [contacts, _, of_contact, of_stay] = create_two_deliveries(&session, &account);
    session.run(&list).run(&["delivery", "show", &of_stay]);
    attempt(&session, 503, vec![Duration::ZERO; 5]);
    session.run(&["delivery", "show", &of_stay]);
    attempt(&session, 0, vec![]);
    session.run(&["delivery", "show", &of_contact]).run(&[&list[..], &["--status", "failed"]].concat()).run(&[
        "delivery",
        "replay",
        &of_contact,
    ]);
    attempt(&session, 200, vec![]);
    session
        .run(&["delivery", "show", &of_contact])
        .run(&[&list[..], &["--status", "succeeded", "--subscription", &contacts, "--since", "1h"]].concat())
        .run(&[&list[..], &["--event", "stay.created", "--since", "2020-01-01T00:00:00Z"]].concat())
        .run(&[&list[..], &["--since", "2099-01-01T00:00:00+11:00"]].concat())
        .run(&[&list[..], &["--limit", "1"]].concat())
        .run(&[&list[..], &["--limit", "2"]].concat())
        .assert("delivery");
}

#[test]
fn output_for_programs() {
    let mut session = Session::new();
    let account = session.account();
    let list = ["delivery", "list", "--json", "--account", &account];
    session.run(&list);
    let [_, _, of_contact, of_stay] = create_two_deliveries(&session, &account);
    session.run(&list).run(&["delivery", "show", &of_stay, "--json"]);
    attempt(&session, 503, vec![Duration::ZERO; 5]);
    attempt(&session, -1, vec![]);
    session
        .run(&["delivery", "show", &of_contact, "--json"])
        .run(&["delivery", "replay", &of_contact, "--json"])
        .run(&[&list[..], &["--status", "pending"]].concat())
        .run(&[&list[..], &["--limit", "1"]].concat())
        .assert("delivery_json");
}

#[test]
fn the_default_limit_is_fifty() {
    let session = Session::new();
    let account = session.account();
    let _: WebhookSubscription =
        session.create(&account, r#"{"url": "https://example.org/", "events": ["stay.created"]}"#);
    let id = TenantId(parse_uuid(&account).unwrap());
    session.write(id, async |tx, &id| {
        for _ in 0..51 {
            let now = advance_clock(tx, id).await?;
            let kinds = [svc_core::values::EventKind::StayCreated];
            svc_core::webhooks::events::emit(tx, id, now, &kinds, &serde_json::json!({ "id": 1 })).await?;
        }
        Ok(())
    });
    let listed = session.output(&["delivery", "list", "--account", &account, "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(rows.len(), 50);
    assert!(rows.windows(2).all(|pair| pair[0]["created_at"].as_str() > pair[1]["created_at"].as_str()));
    let all = session.json(&["delivery", "list", "--account", &account, "--limit", "51"]);
    assert_eq!(all.as_array().unwrap().len(), 51);
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let account = session.account();
    let [contacts, _, of_contact, of_stay] = create_two_deliveries(&session, &account);
    let list = ["delivery", "list", "--account", &account];
    session
        .run(&["delivery", "list"])
        .run(&["delivery", "list", "--account", UNKNOWN_ID])
        .run(&[&list[..], &["--subscription", UNKNOWN_ID]].concat())
        .run(&[&list[..], &["--status", "lost"]].concat())
        .run(&[&list[..], &["--event", "stay.creatd"]].concat())
        .run(&[&list[..], &["--since", "yesterday"]].concat())
        .run(&[&list[..], &["--since", "-2h"]].concat())
        .run(&[&list[..], &["--limit", "0"]].concat())
        .run(&["delivery", "show", "1"])
        .run(&["delivery", "show", UNKNOWN_ID])
        .run(&["delivery", "replay", UNKNOWN_ID]);

    // One delivery has an attempt in progress, the webhook of the other is disabled.
    let (id, hook) = (TenantId(parse_uuid(&account).unwrap()), contacts.parse().unwrap());
    session.write((id, hook), async |tx, &(id, hook)| {
        start_attempts(tx, &Policy::default()).await?;
        let off: WebhookUpdate = svc_core::input::Input::from_body(br#"{"enabled": false}"#)?;
        crud::update::<WebhookSubscription>(tx, id, hook, off).await
    });
    session.run(&["delivery", "replay", &of_contact]).run(&["delivery", "replay", &of_stay]).assert("delivery_refused");
}

#[test]
fn follow_prints_changes_until_ctrl_c() {
    let session = Session::new();
    let account = session.account();
    let _ = create_two_deliveries(&session, &account);
    let mut program = session.program(&["delivery", "list", "--account", &account, "--follow", "--since", "1h"]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let [first, second] = [lines.next().unwrap(), lines.next().unwrap()];
    assert!(first.contains("pending    contact.created") && second.contains("pending    stay.created"), "{first}");
    attempt(&session, 200, vec![]);
    assert!(lines.next().unwrap().contains("succeeded"));
    assert!(lines.next().unwrap().contains("succeeded"));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn bulk_replays_are_created() {
    let mut session = Session::new();
    let account = session.account();
    session.contact(&account);
    let hook = session
        .create::<WebhookSubscription>(&account, r#"{"url": "https://example.org/", "events": ["contact.created"]}"#);
    let hook = hook.id.to_string();
    let replay = ["delivery", "replay", "--subscription", &hook];
    session
        .run(&["delivery", "replay"])
        .run(&replay)
        .run(&["delivery", "replay", "--subscription", UNKNOWN_ID, "--since", "1h"])
        .run(&[&replay[..], &["--since", "1h", "--status", "lost"]].concat())
        .run(&[&replay[..], &["--since", "1h", "--status", "failed,held", "--missed"]].concat())
        .run(&["delivery", "list", "--account", &account])
        .assert("delivery_many");
    // The sender processes the replay and delivers the event from before the webhook existed.
    attempt(&session, 200, vec![]);
    let sent = session.json(&["delivery", "list", "--account", &account, "--status", "succeeded"]);
    assert_eq!(sent.as_array().unwrap().len(), 1);
    let replay = session.json(&[&replay[..], &["--since", "1h", "--status", "succeeded"]].concat());
    assert_eq!((&replay["replayed"], &replay["finished_at"]), (&0.into(), &serde_json::Value::Null));
    assert_eq!(replay["percent"], 0);
}

/// Processes all replays, at least one, as a sender does, without making attempts.
fn process_replays(session: &Session) {
    until("a requested replay", || {
        let any = session.write((), async |tx, ()| {
            let mut any = false;
            while let Some(account) = tx.tenants_with_unfinished_replays(1).await?.pop() {
                any |= replays::step(tx, account).await?;
            }
            Ok(any)
        });
        any.then_some(())
    });
}

#[test]
fn bulk_replays_are_listed_and_can_be_waited_for() {
    let mut session = Session::new();
    session.account();
    let account = session.account();
    let hook = session
        .create::<WebhookSubscription>(&account, r#"{"url": "https://example.org/", "events": ["contact.created"]}"#);
    let (id, hook) = (TenantId(parse_uuid(&account).unwrap()), hook.id);
    let subscription = hook.to_string();
    session.contact(&account);
    attempt(&session, 500, vec![]);
    let list = ["delivery", "replays", "--account", &account];
    let replay = ["delivery", "replay", "--subscription", &subscription, "--since", "2h"];
    session.run(&list).run(&[&list[..], &["--json"]].concat());
    for args in [&["--wait"][..], &["--status", "succeeded", "--wait", "--json"]] {
        let args = [&replay[..], args].concat();
        let running = session.program(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process_replays(&session);
        session.record(&args, &running.wait_with_output().unwrap());
    }

    // A replay stops early when its webhook is disabled before a server processes it.
    session.json(&replay);
    session.run(&[&list[..], &["--limit", "1"]].concat());
    session.write((id, hook), async |tx, &(id, hook)| {
        let off: WebhookUpdate = svc_core::input::Input::from_body(br#"{"enabled": false}"#)?;
        crud::update::<WebhookSubscription>(tx, id, hook, off).await
    });
    process_replays(&session);
    session.run(&list).run(&[&list[..], &["--json", "--limit", "1"]].concat()).assert("delivery_replays");
}

#[test]
fn waiting_for_a_replay_that_stops_early_fails() {
    let mut session = Session::new();
    let account = session.account();
    let hook = session
        .create::<WebhookSubscription>(&account, r#"{"url": "https://example.org/", "events": ["contact.created"]}"#);
    let (id, hook) = (TenantId(parse_uuid(&account).unwrap()), hook.id);
    let subscription = hook.to_string();
    let args =
        ["delivery", "replay", "--subscription", &subscription, "--since", "2020-01-01T00:00:00Z", "--wait", "--json"];
    let running = session.program(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a requested replay", || {
        let replays = session.json(&["delivery", "replays", "--account", &account]);
        (!replays.as_array().unwrap().is_empty()).then_some(())
    });
    session.write((id, hook), async |tx, &(id, hook)| {
        let off: WebhookUpdate = svc_core::input::Input::from_body(br#"{"enabled": false}"#)?;
        crud::update::<WebhookSubscription>(tx, id, hook, off).await
    });
    process_replays(&session);
    let output = running.wait_with_output().unwrap();
    session
        .record(&args, &output)
        .run(&["delivery", "replays"])
        .run(&["delivery", "replays", "--account", UNKNOWN_ID])
        .run(&["delivery", "replay", UNKNOWN_ID, "--wait"])
        .assert("delivery_replays_refused");
}
