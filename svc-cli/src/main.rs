//! The `svc` program. The library of this package contains the implementation.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(svc_cli::run(std::env::args_os())),
        Err(error) => svc_cli::fail(&format!("the program cannot start: {error}")),
    }
}
