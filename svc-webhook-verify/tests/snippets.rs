//! Runs the functions in `docs/programs/`, which receivers in Python and Node can copy, on the vectors.
//!
//! If an interpreter is not installed, its function is skipped with a message on stderr. In CI, that is a failure. The
//! function of Python for public keys needs the package `cryptography`: `.ci/standard-webhooks` installs it, and
//! `SVC_TEST_PYTHON` is the interpreter that has it. Without the variable, `python3` may have it.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

use serde::Deserialize;

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/programs");
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/webhooks/vectors.json");

/// Prints the function's result for each vector that has `X-SVC-Signature`, and for an old delivery with the default
/// age, as JSON.
const PYTHON: &str = r#"
import base64, sys

with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)
results = {}
for vector in vectors:
    if "signature" in vector and "secret" in vector:
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
  if (!("signature" in vector && "secret" in vector)) continue;
  const { name, secret, signature } = vector;
  const body = "body" in vector ? Buffer.from(vector.body) : Buffer.from(vector.body_base64, "base64");
  results[name] = verify(secret, signature, body, vector.max_age_seconds ?? null, vector.now);
  if (name === "valid") results["by default"] = verify(secret, signature, body);
}
process.stdout.write(JSON.stringify(results));
"#;

/// Prints the result of the function for public keys for each vector that has one and no secret, and for an old delivery
/// with the default age, as JSON.
const PYTHON_PUBLIC_KEYS: &str = r#"
import json, sys

with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)
results = {}
for vector in vectors:
    if "webhook_signature" not in vector or "secret" in vector or "lenient" in vector:
        continue
    headers = {"webhook-" + name: vector["webhook_" + name] for name in ("id", "timestamp", "signature")}
    given = (vector["public_key"], headers, vector["body"].encode())
    results[vector["name"]] = verify_with_public_key(*given, vector.get("max_age_seconds"), vector.get("now"))
    if vector["name"] == "ed25519_valid":
        results["by default"] = verify_with_public_key(*given)
        assert not verify_with_public_key(given[0], {}, given[2])
json.dump(results, sys.stdout)
"#;

/// The Node version of [`PYTHON_PUBLIC_KEYS`].
const NODE_PUBLIC_KEYS: &str = r#"
import { readFileSync } from "node:fs";

const results = {};
for (const vector of JSON.parse(readFileSync(process.argv[1], "utf8"))) {
  if (!("webhook_signature" in vector) || "secret" in vector || vector.lenient) continue;
  const headers = {};
  for (const name of ["id", "timestamp", "signature"]) headers[`webhook-${name}`] = vector[`webhook_${name}`];
  const given = [vector.public_key, headers, Buffer.from(vector.body)];
  results[vector.name] = verifyWithPublicKey(...given, vector.max_age_seconds ?? null, vector.now);
  if (vector.name === "ed25519_valid") {
    results["by default"] = verifyWithPublicKey(...given);
    if (verifyWithPublicKey(given[0], {}, given[2])) throw new Error("accepted without headers");
  }
}
process.stdout.write(JSON.stringify(results));
"#;

#[derive(Deserialize)]
struct Vector {
    name: String,
    secret: Option<String>,
    signature: Option<String>,
    valid: bool,
    #[serde(default)]
    lenient: bool,
}

/// The header that a function verifies.
#[derive(Debug, Clone, Copy)]
enum Header {
    /// `X-SVC-Signature`, with the secret.
    Svc,
    /// `webhook-signature`, with the public key.
    Standard,
}

impl Header {
    fn is_in(self, vector: &Vector) -> bool {
        match self {
            Self::Svc => vector.signature.is_some() && vector.secret.is_some(),
            Self::Standard => vector.signature.is_none() && vector.secret.is_none() && !vector.lenient,
        }
    }

    fn valid_vector(self) -> &'static str {
        match self {
            Self::Svc => "valid",
            Self::Standard => "ed25519_valid",
        }
    }
}

/// Returns a file with a function.
fn function(file: &str) -> String {
    std::fs::read_to_string(format!("{PROGRAMS}/{file}")).unwrap()
}

fn check(program: &str, args: &[&str], function: &str, driver: &str, header: Header) {
    let run = Command::new(program).args(args).arg(format!("{function}\n{driver}")).arg(VECTORS).output();
    let output = match run {
        Err(error) => return skip(&format!("{program} does not start: {error}")),
        Ok(output) => output,
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let results: BTreeMap<String, bool> = serde_json::from_slice(&output.stdout).unwrap();

    let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(VECTORS).unwrap()).unwrap();
    let with_header = vectors.into_iter().filter(|vector| header.is_in(vector));
    let mut expected: BTreeMap<String, bool> = with_header.map(|vector| (vector.name, vector.valid)).collect();
    assert!(expected.len() >= 40 && expected[header.valid_vector()]);
    // The age is checked by default.
    expected.insert("by default".to_owned(), false);
    assert_eq!(results, expected, "{program}");
}

/// Reports a skipped function directly to stderr, since the test harness captures the output of passing tests.
fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}; CI runs every function");
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: a function in another language, because {reason}");
}

#[test]
fn the_python_function_agrees_with_every_vector() {
    check("python3", &["-c"], &function("verify.py"), PYTHON, Header::Svc);
}

#[test]
fn the_node_function_agrees_with_every_vector() {
    check("node", &["--input-type=module", "-e"], &function("verify.mjs"), NODE, Header::Svc);
}

#[test]
fn the_python_function_for_public_keys_agrees_with_every_vector() {
    let python = std::env::var("SVC_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imported = Command::new(&python).args(["-c", "import cryptography"]).output();
    if !imported.is_ok_and(|output| output.status.success()) {
        return skip(&format!("{python} does not have the package `cryptography`; see .ci/standard-webhooks"));
    }
    check(&python, &["-c"], &function("verify_with_public_key.py"), PYTHON_PUBLIC_KEYS, Header::Standard);
}

#[test]
fn the_node_function_for_public_keys_agrees_with_every_vector() {
    let function = function("verify_with_public_key.mjs");
    check("node", &["--input-type=module", "-e"], &function, NODE_PUBLIC_KEYS, Header::Standard);
}
