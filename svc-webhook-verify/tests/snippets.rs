//! Runs the snippets of the README, as they stand there, over the vectors.
//!
//! Where an interpreter is missing its snippet is skipped, which stderr tells; with `CI` set that is a failure.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

use serde::Deserialize;

const README: &str = include_str!("../README.md");
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/webhooks/vectors.json");

/// Prints as JSON what the snippet says of each vector that has its header, and of a delivery of old by default.
const PYTHON: &str = r#"
import base64, sys

with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)
said = {}
for vector in vectors:
    if "signature" in vector:
        body = vector["body"].encode() if "body" in vector else base64.b64decode(vector["body_base64"])
        age = {"max_age": vector.get("max_age_seconds"), "now": vector.get("now")}
        said[vector["name"]] = verify(vector["secret"], vector["signature"], body, **age)
        if vector["name"] == "valid":
            said["by default"] = verify(vector["secret"], vector["signature"], body)
json.dump(said, sys.stdout)
"#;

/// The same.
const NODE: &str = r#"
import { readFileSync } from "node:fs";

const said = {};
for (const vector of JSON.parse(readFileSync(process.argv[1], "utf8"))) {
  if (!("signature" in vector)) continue;
  const { name, secret, signature } = vector;
  const body = "body" in vector ? Buffer.from(vector.body) : Buffer.from(vector.body_base64, "base64");
  said[name] = verify(secret, signature, body, vector.max_age_seconds ?? null, vector.now);
  if (name === "valid") said["by default"] = verify(secret, signature, body);
}
process.stdout.write(JSON.stringify(said));
"#;

#[derive(Deserialize)]
struct Vector {
    name: String,
    signature: Option<String>,
    valid: bool,
}

/// The one block of code in this language.
fn snippet(language: &str) -> &'static str {
    let mut blocks = README.split("\n```").filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    let (block, more) = (blocks.next().unwrap(), blocks.next());
    assert!(more.is_none() && block.contains("verify("), "{language}");
    block
}

fn check(program: &str, args: &[&str], snippet: &str, driver: &str) {
    let run = Command::new(program).args(args).arg(format!("{snippet}\n{driver}")).arg(VECTORS).output();
    let output = match run {
        Err(error) => return skip(&format!("{program} does not start: {error}")),
        Ok(output) => output,
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let said: BTreeMap<String, bool> = serde_json::from_slice(&output.stdout).unwrap();

    let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let with_header = vectors.into_iter().filter(|vector| vector.signature.is_some());
    let mut want: BTreeMap<String, bool> = with_header.map(|vector| (vector.name, vector.valid)).collect();
    assert!(want.len() >= 40 && want["valid"]);
    // Its age is checked unless the caller says otherwise.
    want.insert("by default".to_owned(), false);
    assert_eq!(said, want, "{program}");
}

/// Says so past the test harness, which keeps what passing tests print to itself.
fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}; CI runs every snippet");
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: a snippet of svc-webhook-verify/README.md, since {reason}");
}

#[test]
fn the_python_snippet_agrees_with_every_vector() {
    check("python3", &["-c"], snippet("python"), PYTHON);
}

#[test]
fn the_node_snippet_agrees_with_every_vector() {
    check("node", &["--input-type=module", "-e"], snippet("js"), NODE);
}
