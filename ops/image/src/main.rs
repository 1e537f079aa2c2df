//! Both programs in one file, since they share most of their code: the image has it once. It runs as `svc` when it is
//! called by that name, and as `svc-server` otherwise.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let name = std::env::args_os().next().unwrap_or_default();
    if Path::new(&name).file_name() == Some(OsStr::new("svc")) { svc_cli::main() } else { svc_server::program::main() }
}
