//! Measures how fast svc is, as ratios within one run: its server against a bare hyper server that returns the same
//! bytes, its store against bare SQL that commits the same rows, its sender against a bare HTTP client, and on
//! PostgreSQL its server against pgbench. Prints one table; `README.md` explains it.

mod aged;
mod apps;
mod bare_client;
mod bare_server;
mod child;
mod commits;
mod dashboard;
mod deliver;
mod error;
mod filters;
mod growth;
mod load;
mod options;
mod pending;
mod postgres;
mod random;
mod receiver;
mod requests;
mod run;
mod sample;
mod scale;
mod search;
mod seed;
mod server;
mod table;
mod worklists;

use std::process::ExitCode;

use clap::Parser as _;

use self::options::{Cli, Role};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Cli { options, role } = Cli::parse();
    let done = match role {
        None => run::run(&options),
        Some(Role::ServeSvc { database, sending, counting, indexing }) => {
            server::serve(&database, sending, counting, indexing)
        }
        Some(Role::ServeDashboard { database, request_log }) => server::serve_whole(&database, request_log),
        Some(Role::ServeBare) => bare_server::serve(),
        Some(Role::PostBare) => bare_client::post(),
        Some(Role::Commit { by, file, seconds, concurrency }) => commits::run(by, &file, seconds, concurrency),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            table::print_error(&*error);
            ExitCode::FAILURE
        }
    }
}
