//! Runs the Python of the documentation.

use std::io::{Seek as _, Write as _};
use std::process::{Command, Output};

/// Returns the only Python block of a page.
pub(crate) fn block(page: &'static str) -> &'static str {
    let mut blocks = page.split("\n```").filter_map(|block| block.strip_prefix("python\n"));
    let (Some(block), None) = (blocks.next(), blocks.next()) else { panic!("the page has no single block of Python") };
    block
}

/// Runs a program with arguments, environment variables and standard input. Returns `None`, and says so, if Python is not
/// installed.
///
/// # Panics
///
/// If it is not installed and `CI` is set.
pub(crate) fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Option<Output> {
    let mut stdin = tempfile::tempfile().unwrap();
    stdin.write_all(input).unwrap();
    stdin.rewind().unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", program]).args(arguments).envs(variables.iter().copied()).stdin(stdin);
    match python.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "python3 does not start: {error}; CI runs every snippet");
            // Written to the terminal directly, because the test harness hides the output of passing tests.
            let _ =
                writeln!(std::io::stderr(), "\nSKIPPED: Python of the documentation, as it does not start: {error}");
            None
        }
    }
}
