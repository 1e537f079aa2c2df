//! How fast svc is, in one run: its server against a bare hyper server that returns the same bytes, its store against
//! bare SQL that commits the same rows, its sender against a bare client, and on PostgreSQL its server against pgbench.
//! Prints one table; `README.md` says how to read it.

mod aged;
mod bare;
mod child;
mod commits;
mod deliver;
mod load;
mod options;
mod ours;
mod pending;
mod poster;
mod postgres;
mod receiver;
mod requests;
mod run;
mod sample;
mod seed;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use self::options::{Cli, Role};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whatever goes wrong ends the run.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let Cli { options, role } = Cli::parse();
    let done = match role {
        None => run::run(&options),
        Some(Role::ServeOurs { database, sending, counting }) => ours::serve(&database, sending, counting),
        Some(Role::ServeBare) => bare::serve(),
        Some(Role::PostBare) => poster::post(),
        Some(Role::Commit { by, file, seconds, at_once }) => commits::run(by, &file, seconds, at_once),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            table::complain(&*error);
            ExitCode::FAILURE
        }
    }
}
