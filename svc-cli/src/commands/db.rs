//! `svc db`.

mod backup;
mod check;
mod copy;
mod prune;
mod stats;

use serde_json::json;
use svc_core::values::HostPolicy;

use crate::cli::DbCommand;
use crate::exit::Failure;
use crate::output::Outcome;

pub(super) async fn run(url: &str, command: DbCommand) -> Result<Outcome, Failure> {
    match command {
        DbCommand::Migrate => {
            let applied = svc_store::migrate(url).await?;
            let text = match applied.as_slice() {
                [] => "The schema is up to date.".to_owned(),
                names => format!("Applied migrations: {}.", names.join(", ")),
            };
            Outcome::new(&json!({ "applied": applied }), text)
        }
        DbCommand::Check => check::run(url).await,
        DbCommand::Stats => stats::run(url).await,
        DbCommand::Prune { retention, dry_run } => {
            let store = super::open(url, HostPolicy::Public).await?;
            prune::run(&*store, retention, dry_run).await
        }
        DbCommand::Backup { file } => backup::run(url, &file).await,
        DbCommand::Copy { from, to, resume } => copy::run(&from, &to, resume).await,
    }
}
