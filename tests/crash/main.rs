//! Kills the server while clients write and receivers receive, again and again, and then compares what clients
//! and receivers noted down with what is in the database.
//!
//! ```text
//! cargo run -p svc-tests --bin crash -- --rounds 20 [--seed S] [--database-url URL|postgres]
//!     [--faults fsync|no-space|disk-full]
//! ```
//!
//! - `clients` send requests and repeat those whose answer a kill has swallowed; `receiver` takes deliveries.
//!   Both keep a journal.
//! - `run` starts everything; `rounds` start the server as a process of its own, end it by SIGKILL at a random moment and
//!   start it again. At the end it waits until nothing is pending.
//! - `found` reads rows over the API, events and deliveries through the store's public interface.
//! - `outage` lets the disk fail, and asks meanwhile what must go on: reads, /healthz, /readyz.
//! - `check` names everything that does not fit. The program exits 1 then.
//!
//! A seed repeats requests and moments, not how the threads take turns.

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
use svc_tests::node;

use self::options::{Cli, Role};

/// Violations that are printed; where there are more, the first ones tell enough.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    let Cli { options, role } = Cli::parse();
    if let Some(Role::Serve(config)) = role {
        return node::serve(*config);
    }
    let mut out = io::stdout().lock();
    let violations = match run::run(&options) {
        Ok(result) => {
            // A reader that goes away changes nothing about the verdict.
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
