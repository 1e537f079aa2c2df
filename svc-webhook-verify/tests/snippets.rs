//! Runs the Python and Node snippets of the README on the vectors.
//!
//! If an interpreter is not installed, its snippet is skipped with a message on stderr. In CI, that is a failure.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

use serde::Deserialize;

const README: &str = include_str!("../README.md");
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/webhooks/vectors.json");

/// Prints the snippet's result for each vector that has `X-SVC-Signature`, and for an old delivery with the default
/// age, as JSON.
const PYTHON: &str = r#"
import base64, sys

with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)
results = {}
for vector in vectors:
    if "signature" in vector:
        body = vector["body"].encode() if "body" in vector else base64.b64decode(vector["body_base64"])
        age = {"max_age": vector.get("max_age_seconds"), "now": vector.get("now")}
        results[vector["name"]] = verify(vector["secret"], vector["signature"], body, **age)
        if vector["name"] == "valid":
            results["by default"] = verify(vector["secret"], vector["signature"], body)
json.dump(results, sys.stdout)
"#;

/// The Node version of [`PYTHON`].
const NODE: &str = r#"
import { readFileSync } from "node:fs";

const results = {};
for (const vector of JSON.parse(readFileSync(process.argv[1], "utf8"))) {
  if (!("signature" in vector)) continue;
  const { name, secret, signature } = vector;
  const body = "body" in vector ? Buffer.from(vector.body) : Buffer.from(vector.body_base64, "base64");
  results[name] = verify(secret, signature, body, vector.max_age_seconds ?? null, vector.now);
  if (name === "valid") results["by default"] = verify(secret, signature, body);
}
process.stdout.write(JSON.stringify(results));
"#;

#[derive(Deserialize)]
struct Vector {
    name: String,
    signature: Option<String>,
    valid: bool,
}

/// Returns the only code block in this language.
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
    let results: BTreeMap<String, bool> = serde_json::from_slice(&output.stdout).unwrap();

    let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let with_header = vectors.into_iter().filter(|vector| vector.signature.is_some());
    let mut expected: BTreeMap<String, bool> = with_header.map(|vector| (vector.name, vector.valid)).collect();
    assert!(expected.len() >= 40 && expected["valid"]);
    // The age is checked by default.
    expected.insert("by default".to_owned(), false);
    assert_eq!(results, expected, "{program}");
}

/// Reports a skipped snippet directly to stderr, since the test harness captures the output of passing tests.
fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}; CI runs every snippet");
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: a snippet of svc-webhook-verify/README.md, because {reason}");
}

#[test]
fn the_python_snippet_agrees_with_every_vector() {
    check("python3", &["-c"], snippet("python"), PYTHON);
}

#[test]
fn the_node_snippet_agrees_with_every_vector() {
    check("node", &["--input-type=module", "-e"], snippet("js"), NODE);
}
