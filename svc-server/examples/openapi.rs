//! Writes the OpenAPI document of a version: `cargo run -p svc-server --example openapi -- v1`.
//!
//! The file is `svc-server/openapi/v1.json`, or the one that a second argument names.

use std::path::{Path, PathBuf};

use svc_server::api::openapi;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let version = arguments.next().ok_or("say which version: v1 or v2")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi");
    let file = arguments.next().map_or_else(|| folder.join(format!("{version}.json")), PathBuf::from);
    let text = openapi::text(&version).ok_or("there is no such version; say v1 or v2")?;
    std::fs::write(file, text)?;
    Ok(())
}
