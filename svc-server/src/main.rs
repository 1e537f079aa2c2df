//! The program `svc-server`. See [`svc_server::program`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    svc_server::program::main()
}
