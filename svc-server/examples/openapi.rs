//! Writes the OpenAPI document of a version to `svc-server/openapi/v1.json`, or to the file in a second argument.
//!
//! Run `cargo run -p svc-examples --bin openapi -- v1`.

use std::path::{Path, PathBuf};

use svc_server::api::openapi;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let version = arguments.next().ok_or("name a version: v1, v2 or platform-v1")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../svc-server/openapi");
    let file = arguments.next().map_or_else(|| folder.join(format!("{version}.json")), PathBuf::from);
    let text = openapi::text(&version).ok_or("this version does not exist; name v1, v2 or platform-v1")?;
    std::fs::write(file, text)?;
    Ok(())
}
