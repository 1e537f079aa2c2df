//! A live delivery before the public Standard Webhooks libraries of Python and Node. Those of Rust, the crate
//! `standardwebhooks`, are asked beside the engine.
//!
//! `.ci/standard-webhooks` installs them. Where `SVC_TEST_PYTHON` or `SVC_TEST_NODE_PATH` does not say where they are,
//! the test is skipped, which stderr tells; with `CI` set that is a failure.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::webhooks::subscriptions;

use crate::engine::{Running, within};
use crate::receivers::{OK, Received, Receiver};

/// The interpreter that has the library.
const PYTHON: &str = "SVC_TEST_PYTHON";
/// The folder that has it, for `node`.
const NODE: &str = "SVC_TEST_NODE_PATH";

/// Prints what the library says of each body, for each secret.
const ASK_PYTHON: &str = r#"
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError

def ask(secret, body):
    try:
        Webhook(secret).verify(body, given["headers"])
        return "taken"
    except WebhookVerificationError:
        return "refused"

given = json.load(sys.stdin)
json.dump([[ask(secret, body) for body in given["bodies"]] for secret in given["secrets"]], sys.stdout)
"#;

/// The same.
const ASK_NODE: &str = r#"
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

function ask(secret, body) {
  try {
    new Webhook(secret).verify(body, given.headers);
    return "taken";
  } catch (error) {
    if (error instanceof WebhookVerificationError) return "refused";
    throw error;
  }
}

process.stdout.write(JSON.stringify(given.secrets.map((secret) => given.bodies.map((body) => ask(secret, body)))));
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_library_of_python_takes_what_was_sent_and_nothing_else() {
    let Some(python) = installed(PYTHON) else { return };
    let mut ask = Command::new(python);
    ask.args(["-c", ASK_PYTHON]);
    check(ask).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_of_node_takes_what_was_sent_and_nothing_else() {
    let Some(packages) = installed(NODE) else { return };
    let mut ask = Command::new("node");
    ask.args(["-e", ASK_NODE]).env("NODE_PATH", packages);
    check(ask).await;
}

/// Where a library is. Says past the test harness, which keeps what passing tests print to itself, that it is nowhere.
fn installed(variable: &str) -> Option<OsString> {
    let found = std::env::var_os(variable);
    if found.is_none() {
        let reason = format!("{variable} is not set; see .ci/standard-webhooks");
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: a public Standard Webhooks library, since {reason}");
    }
    found
}

/// A delivery while a rotated secret overlaps: it is taken with either secret, and refused with a third, or when
/// anything in its body was changed.
async fn check(ask: Command) {
    let receiver = Receiver::answering(&[OK]).await;
    let running = Running::start(&[]).await;
    let hook = running.subscribe(&receiver.url("/hook")).await;
    let (tenant, id, overlap) = (running.tenant, hook.id, Duration::from_secs(3600));
    let rotate = running.store.write("test", move |tx| Box::pin(subscriptions::rotate_secret(tx, tenant, id, overlap)));
    let rotated = rotate.await.unwrap();
    running.contact("ada@example.com").await;
    let received = within(receiver.next()).await;
    running.stop().await;

    let sent = String::from_utf8(received.body.clone()).unwrap();
    let tampered = sent.replace("example.com", "example.org");
    assert_ne!(tampered, sent);
    let other = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
    let given = json!({
        "secrets": [rotated.secret.reveal(), hook.secret.reveal(), other],
        "headers": headers(&received),
        "bodies": [sent, tampered, format!("{sent} ")],
    });
    let (either, neither) = (["taken", "refused", "refused"], ["refused"; 3]);
    assert_eq!(answer(ask, &given), json!([either, either, neither]));
}

fn headers(received: &Received) -> BTreeMap<&str, &str> {
    received.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
}

fn answer(mut ask: Command, given: &Value) -> Value {
    let mut child = ask.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
