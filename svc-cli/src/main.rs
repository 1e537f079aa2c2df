//! The `svc` program. The library of this package contains the implementation.

use std::process::ExitCode;

fn main() -> ExitCode {
    svc_cli::main()
}
