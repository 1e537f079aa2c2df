//! Kills the server repeatedly under load, and checks that no acknowledged write and no delivery is lost.
//!
//! The server is a separate process. Clients write and an endpoint receives deliveries while the server is killed and
//! started again. Clients and the endpoint keep journals. At the end they are compared with the content of the
//! database.
//!
//! ```text
//! cargo run -p svc-tests --bin crash -- --rounds 20 [--seed S] [--database-url URL|postgres]
//!     [--faults fsync|no-space|disk-full]
//! ```
//!
//! - `clients` send requests and repeat those whose outcome a kill left unknown. `receiver` accepts deliveries.
//! - `run` starts everything. In each round, `rounds` lets the server run for a random time, ends it by SIGKILL and
//!   starts it again. At the end it waits until no delivery is pending.
//! - `state` reads records through the API, and events and deliveries through the store's public interface.
//! - `outage` makes the disk fail, and checks that reads, /healthz and /readyz still work.
//! - `check` lists every violation. The program exits with 1 if there is one.
//!
//! A seed repeats the requests and the times of the kills, but not the scheduling of the threads.

mod check;
mod clients;
mod fixture;
mod journal;
mod options;
mod outage;
mod receiver;
mod rounds;
mod run;
mod state;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use svc_test_support::node;

use self::options::{Cli, Role};

/// The greatest number of violations that are printed.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    let Cli { options, role } = Cli::parse();
    if let Some(Role::Serve(config)) = role {
        return node::serve(*config);
    }
    let mut out = io::stdout().lock();
    let violations = match run::run(&options) {
        Ok(result) => {
            // A closed pipe must not change the exit code.
            let _ = writeln!(out, "{}", result.summary);
            result.violations
        }
        Err(error) => vec![error.to_string()],
    };
    for violation in violations.iter().take(SHOWN) {
        let _ = writeln!(out, "VIOLATION: {violation}");
    }
    if violations.len() > SHOWN {
        let _ = writeln!(out, "and {} more", violations.len() - SHOWN);
    }
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
