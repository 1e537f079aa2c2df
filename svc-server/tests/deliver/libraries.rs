//! Verification of a real delivery by the public Standard Webhooks libraries of Python and Node. That of Rust, the crate
//! `standardwebhooks`, is used by the tests of the engine.
//!
//! `.ci/standard-webhooks` installs the libraries. `SVC_TEST_PYTHON` and `SVC_TEST_NODE_PATH` say where they are. A test
//! without its variable is skipped with a message on stderr; with `CI` set it fails.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::engine::{Sender, within};
use super::receivers::{OK, Received, Receiver};

/// The variable with the path of the Python interpreter that has the library.
const PYTHON: &str = "SVC_TEST_PYTHON";
/// The variable with the folder of packages for `node`.
const NODE: &str = "SVC_TEST_NODE_PATH";

/// A script that prints, for each secret and body, whether the library accepts the signature.
const VERIFY_IN_PYTHON: &str = r#"
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError

def verify(secret, body):
    try:
        Webhook(secret).verify(body, given["headers"])
        return "accepted"
    except WebhookVerificationError:
        return "refused"

given = json.load(sys.stdin)
json.dump([[verify(secret, body) for body in given["bodies"]] for secret in given["secrets"]], sys.stdout)
"#;

/// The same script for Node.
const VERIFY_IN_NODE: &str = r#"
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

function verify(secret, body) {
  try {
    new Webhook(secret).verify(body, given.headers);
    return "accepted";
  } catch (error) {
    if (error instanceof WebhookVerificationError) return "refused";
    throw error;
  }
}

process.stdout.write(JSON.stringify(given.secrets.map((secret) => given.bodies.map((body) => verify(secret, body)))));
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_accepts_a_delivery_and_refuses_every_change_to_it() {
    let Some(python) = installed(PYTHON) else { return };
    let mut verifier = Command::new(python);
    verifier.args(["-c", VERIFY_IN_PYTHON]);
    check(verifier).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_library_accepts_a_delivery_and_refuses_every_change_to_it() {
    let Some(packages) = installed(NODE) else { return };
    let mut verifier = Command::new("node");
    verifier.args(["-e", VERIFY_IN_NODE]).env("NODE_PATH", packages);
    check(verifier).await;
}

/// Returns the location of a library. If it is not set, writes directly to stderr, because the test harness captures the
/// output of passing tests.
fn installed(variable: &str) -> Option<OsString> {
    let found = std::env::var_os(variable);
    if found.is_none() {
        let reason = format!("{variable} is not set; see .ci/standard-webhooks");
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        let _ = writeln!(std::io::stderr(), "\nSKIPPED: a public Standard Webhooks library, since {reason}");
    }
    found
}

/// Checks a delivery during the overlap of a rotation: it is accepted with either secret, and refused with a third one or
/// with a changed body.
async fn check(verifier: Command) {
    let receiver = Receiver::with_responses(&[OK]).await;
    let fixture = Sender::start(&[]).await;
    let hook = fixture.subscribe(&receiver.url("/hook")).await;
    let overlap = Duration::from_secs(3600);
    let rotated = fixture.account().webhooks().rotate_secret(hook.id, overlap).await.unwrap();
    fixture.contact("ada@example.com").await;
    let received = within(receiver.next()).await;
    fixture.stop().await;

    let sent = String::from_utf8(received.body.clone()).unwrap();
    let tampered = sent.replace("example.com", "example.org");
    assert_ne!(tampered, sent);
    let other = "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o=";
    let given = json!({
        "secrets": [rotated.secret.reveal(), hook.secret.reveal(), other],
        "headers": headers(&received),
        "bodies": [sent, tampered, format!("{sent} ")],
    });
    let (either, neither) = (["accepted", "refused", "refused"], ["refused"; 3]);
    assert_eq!(results(verifier, &given), json!([either, either, neither]));
}

fn headers(received: &Received) -> BTreeMap<&str, &str> {
    received.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
}

fn results(mut verifier: Command, given: &Value) -> Value {
    let mut child = verifier.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
