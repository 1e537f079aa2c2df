//! `svc db`.

mod backup;
mod check;
mod copy;
mod prune;
mod repair_clock;
mod stats;

use serde_json::json;

use super::Database;
use crate::cli::DbCommand;
use crate::exit::Failure;
use crate::output::{self, Outcome};
use crate::service::Service;

pub(super) async fn run(database: &Database, command: DbCommand) -> Result<Outcome, Failure> {
    let url = &database.url;
    match command {
        DbCommand::Migrate => {
            let report = svc_store::migrate_and_report(url).await?;
            if let Some(note) = &report.note {
                output::note(note);
            }
            let applied = report.applied;
            let text = match applied.as_slice() {
                [] => "The schema is up to date.".to_owned(),
                names => format!("Applied migrations: {}.", names.join(", ")),
            };
            Outcome::new(&json!({ "applied": applied }), text)
        }
        DbCommand::Check => check::run(url).await,
        DbCommand::Stats => stats::run(url).await,
        DbCommand::Prune { retention, dry_run } => prune::run(&*database.open(false).await?, retention, dry_run).await,
        DbCommand::RepairClock { account } => {
            let service = Service::of_database(database.open(false).await?);
            repair_clock::run(&service, account.as_ref()).await
        }
        DbCommand::Backup { file } => backup::run(url, &file).await,
        DbCommand::Copy { from, to, resume } => copy::run(&from, &to, resume).await,
    }
}
