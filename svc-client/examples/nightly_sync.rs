//! Keeps a copy of the contacts and the jobs in CSV files.
//!
//! Start it every night. The first run reads everything, and each later one what changed since. It can be killed at any
//! time: the next run goes on where the copy ends.
//!
//! ```sh
//! export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_…
//! cargo run -p svc-examples --bin nightly_sync -- copy/
//! ```

#![expect(clippy::print_stdout, reason = "the example says what it did")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use futures_util::TryStreamExt as _;
use serde_json::Value;
use svc_client::Collection;
use svc_client::prelude::*;
use svc_client::records::Syncable;
use svc_client::svc_core::input::FieldNames;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(&env::var("SVC_URL")?, &env::var("SVC_KEY")?).build()?;
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("name a folder for the copy")?);
    let changes = run(&client, &folder).await?;
    println!("{changes} changes");
    Ok(())
}

/// Brings the copy in a folder up to date. Returns how many changes were read.
pub(crate) async fn run(client: &Client, folder: &Path) -> Result<usize, Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    Ok(sync(client.contacts(), folder).await? + sync(client.jobs(), folder).await?)
}

/// One row for each record: its id, and its fields in the order of the header.
type Rows = BTreeMap<String, Vec<String>>;

async fn sync<R: Syncable + FieldNames>(collection: Collection<R>, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let copy = folder.join(format!("{}.csv", R::COLLECTION));
    let position = folder.join(format!("{}.position.json", R::COLLECTION));
    let mut rows = read(&copy)?;
    let since =
        if position.exists() { serde_json::from_slice(&fs::read(&position)?)? } else { SyncPosition::default() };

    let mut changes = 0;
    let mut pages = std::pin::pin!(collection.sync_since(since));
    while let Some(page) = pages.try_next().await? {
        changes += page.records.len();
        for record in page.records {
            if record.deleted_at().is_some() {
                rows.remove(&record.id().to_string());
            } else {
                rows.insert(record.id().to_string(), row(&record)?);
            }
        }
        // The records first. A copy that is ahead of its position reads a page again, which changes nothing; a position
        // that is ahead of its copy would miss one.
        write::<R>(&copy, &rows)?;
        replace(&position, &serde_json::to_vec(&page.position)?)?;
    }
    Ok(changes)
}

fn row<R: Syncable + FieldNames>(record: &R) -> Result<Vec<String>, Box<dyn Error>> {
    let fields = serde_json::to_value(record)?;
    let text = |name: &&str| match &fields[*name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Ok(R::FIELD_NAMES.iter().map(text).collect())
}

fn read(copy: &Path) -> Result<Rows, Box<dyn Error>> {
    if !copy.exists() {
        return Ok(Rows::new());
    }
    let rows = csv::Reader::from_path(copy)?.into_deserialize::<Vec<String>>();
    rows.map(|row| row.map(|row| (row[0].clone(), row)).map_err(Into::into)).collect()
}

fn write<R: FieldNames>(copy: &Path, rows: &Rows) -> Result<(), Box<dyn Error>> {
    let mut text = csv::Writer::from_writer(Vec::new());
    text.write_record(R::FIELD_NAMES)?;
    for row in rows.values() {
        text.write_record(row)?;
    }
    Ok(replace(copy, &text.into_inner()?)?)
}

/// Replaces a file as a whole, so that none is ever half written.
fn replace(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let new = file.with_extension("new");
    fs::write(&new, content)?;
    fs::rename(new, file)
}
