//! Creates the contacts of a CSV file, several at a time, as fast as the rate limit of the key lets it.
//!
//! The file has the columns `email`, `first_name` and `last_name`. A run that was stopped can be started again within a
//! day: the key of each create follows from its row, so nothing is created twice.
//!
//! ```sh
//! export SVC_URL=http://127.0.0.1:8080 SVC_KEY=svc_live_…
//! cargo run -p svc-examples --bin bulk_create -- contacts.csv
//! ```

#![expect(clippy::print_stdout, reason = "the example says what it did")]

use std::env;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use svc_client::prelude::*;

/// How many creates are on their way at a time. The stream reads the next row when one of them is done, so neither the
/// service nor the memory of this program is flooded.
const AT_A_TIME: usize = 8;

#[derive(Clone, Deserialize)]
struct Row {
    email: String,
    first_name: String,
    last_name: String,
}

/// What became of the rows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// The rows that are contacts now.
    pub(crate) created: usize,
    /// The rows whose email address another contact has.
    pub(crate) existing: usize,
    /// The rows that the service refused, with the reason.
    pub(crate) refused: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    // Each create waits for its turn, for an hour if it has to.
    let patient = RetryPolicy::default().attempts(u32::MAX).total(Duration::from_secs(3600));
    let client = Client::builder(&env::var("SVC_URL")?, &env::var("SVC_KEY")?).retry(patient).build()?;
    let file = PathBuf::from(env::args_os().nth(1).ok_or("name a CSV file")?);
    let Report { created, existing, refused } = run(&client, &file).await?;
    println!("{created} created, {existing} there already, {} refused", refused.len());
    for reason in refused {
        println!("{reason}");
    }
    Ok(())
}

/// Creates the contacts of a file.
pub(crate) async fn run(client: &Client, file: &Path) -> Result<Report, Box<dyn StdError>> {
    let rows = csv::Reader::from_path(file)?.into_deserialize::<Row>();
    let results = stream::iter(rows).map(|row| create(client, row)).buffer_unordered(AT_A_TIME);
    results
        .try_fold(Report::default(), async |mut report, result| {
            match result {
                Outcome::Created => report.created += 1,
                Outcome::Existing => report.existing += 1,
                Outcome::Refused(reason) => report.refused.push(reason),
            }
            Ok(report)
        })
        .await
}

enum Outcome {
    Created,
    Existing,
    Refused(String),
}

async fn create(client: &Client, row: csv::Result<Row>) -> Result<Outcome, Box<dyn StdError>> {
    let row = row?;
    let contact = match contact(&row) {
        Ok(contact) => contact,
        Err(reason) => return Ok(Outcome::Refused(format!("{}: {reason}", row.email))),
    };
    let key = format!("bulk-create {}", contact.email.as_str());
    match client.contacts().create_with_key(&contact, &key).await {
        Ok(_) => Ok(Outcome::Created),
        Err(Error::Api(error)) if error.code == "email_taken" => Ok(Outcome::Existing),
        Err(Error::Api(error)) if error.status == 400 => {
            Ok(Outcome::Refused(format!("{}: {}", row.email, error.message)))
        }
        // No access, or a service that is away for longer than the client waits: the rest would fail as well.
        Err(error) => Err(error.into()),
    }
}

/// Checks a row by the rules of the service, before a request is spent on it.
fn contact(row: &Row) -> Result<ContactCreate, Box<dyn StdError>> {
    let details = ContactDetails {
        first_name: Patch::Set(Some(row.first_name.parse()?)),
        last_name: Patch::Set(Some(row.last_name.parse()?)),
        ..ContactDetails::default()
    };
    Ok(ContactCreate { details, ..ContactCreate::new(row.email.parse()?) })
}
