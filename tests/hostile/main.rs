//! Hostile clients together with honest ones against a real server: how the honest clients are affected, and what the
//! server needs.
//!
//! ```text
//! cargo run --profile dist -p svc-tests --bin hostile -- [ATTACK…] [--seconds N]
//! ```
//!
//! Each attack has its own server, over TLS for the attacks that use HTTP/2 or TLS. Honest clients send requests at a
//! fixed rate and count the time from when a request was due: first alone, then together with the attack and for a
//! second after it. The attackers run in another process with the lowest priority, so that on one machine they take
//! no more from the server than remote attackers would. The server has its default limits. There are enough honest
//! clients that none exceeds its limit; the attackers have twenty keys. Where there are 10,000 attackers, they have an address of
//! their own, on Linux.
//!
//! - `server` is the server, `honest` its clients, `attacks` the attackers; `report` compares the results.
//!
//! The program exits with 1 unless all of this holds: each honest request gets the right response; 99 % of them take
//! at most twice the time that they took alone, or at most 20 ms; the server keeps running without a panic in at most
//! 256 MB, and stops with exit code 0; and malformed requests get exactly the expected responses.

mod attacks;
mod honest;
mod report;
mod server;

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum as _};
use svc_server::program::config::Config;
use svc_test_support::{Result, node};

use self::attacks::Attack;
use self::report::Report;
use self::server::{Target, TestServer};

/// Set once the limit of open files has been raised.
const LIMIT_RAISED: &str = "HOSTILE_RAISED";
/// How long an honest client waits for a response.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits on a machine that is used by others. The first packet of a connection for which the system has no place is
/// repeated for the fourth time after 15 s.
const LONG_PATIENCE: Duration = Duration::from_secs(30);
/// How long honest clients continue after an attack.
const AFTER: Duration = Duration::from_secs(1);

/// Hostile clients together with honest ones against a real server.
#[derive(Debug, Parser)]
#[command(name = "hostile", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Args)]
struct Options {
    /// Attacks to run; all of them by default.
    #[arg(value_enum, value_name = "ATTACK")]
    attacks: Vec<Attack>,
    /// Length of each attack in seconds, and of the time before it in which honest clients are alone.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Requests per second of the honest clients.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Does not judge latencies, for machines that are used by others.
    #[arg(long)]
    any_latency: bool,
    /// The server to test, instead of the one built into this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Runs the server.
    #[command(hide = true)]
    Serve(Box<Config>),
    /// Runs the attackers.
    #[command(hide = true)]
    Attack(Box<AttackOptions>),
}

/// The options of the attackers' process.
#[derive(Debug, Args)]
pub(crate) struct AttackOptions {
    #[arg(value_enum)]
    attack: Attack,
    #[command(flatten)]
    target: Target,
    #[arg(long)]
    millis: u64,
}

fn main() -> ExitCode {
    if std::env::var_os(LIMIT_RAISED).is_none() {
        let reason = with_all_files();
        let _ = writeln!(std::io::stderr(), "the limit of open files could not be raised: {reason}");
    }
    let Cli { options, role } = Cli::parse();
    if let Some(Role::Serve(config)) = role {
        return node::serve(*config);
    }
    let done = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Into::into);
    let done = done.and_then(|runtime| match role {
        Some(Role::Attack(options)) => runtime.block_on(attacks::run(&options)),
        _ => runtime.block_on(run(&options)),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            let _ = writeln!(std::io::stdout(), "VIOLATION: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Restarts the program with the greatest allowed number of open files; returns only if that fails.
fn with_all_files() -> std::io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let raise = "ulimit -n \"$(ulimit -Hn)\"; exec \"$0\" \"$@\"";
    Command::new("sh").args(["-c", raise]).arg(program).args(std::env::args_os().skip(1)).env(LIMIT_RAISED, "1").exec()
}

async fn run(options: &Options) -> Result<bool> {
    let named = &options.attacks;
    let attacks = if named.is_empty() { Attack::value_variants() } else { named.as_slice() };
    let time = Duration::from_secs(options.seconds);
    let patience = if options.any_latency { LONG_PATIENCE } else { PATIENCE };
    let mut all_held = true;
    show(&report::heading());
    for attack in attacks {
        let requests =
            options.rate.saturating_mul(u32::try_from(2 * options.seconds + AFTER.as_secs()).unwrap_or(u32::MAX));
        let server = TestServer::start(options.server.clone(), *attack, requests).await?;
        let alone = honest::load(&server.target, options.rate, time, patience).await;
        let together = honest::load(&server.target, options.rate, time + AFTER, patience);
        let (observed, together) = tokio::join!(server.attack(*attack, time), together);
        let report = Report { attack: *attack, alone, together, observed: observed?, server: server.end().await };
        let violations = report.violations(!options.any_latency);
        show(&report.line());
        for violation in &violations {
            show(&format!("VIOLATION: {}: {violation}", attack.name()));
        }
        all_held &= violations.is_empty();
    }
    Ok(all_held)
}

fn show(line: &str) {
    // A closed pipe must not change the exit code.
    let _ = writeln!(std::io::stdout(), "{line}");
}
