//! The server in one binary.

use std::process::ExitCode;

use clap::Parser as _;
use svc_server::config::Config;
use svc_server::{run, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = Config::parse();
    telemetry::init(config.log_format);
    match run::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            error.exit_code()
        }
    }
}
