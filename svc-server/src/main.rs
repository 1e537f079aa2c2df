//! The program `svc-server`. See [`svc_server::program`].

use std::process::ExitCode;

use svc_server::program::config::Config;
use svc_server::{program, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = Config::load();
    telemetry::init(config.log_format);
    match program::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "cannot run the server");
            error.exit_code()
        }
    }
}
