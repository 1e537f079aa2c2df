//! Child processes of this program, and their processor time and memory as the kernel reports them.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::error::Result;

/// `USER_HZ`, the unit of processor times in `/proc`: 100 on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// A child process that ends when its handle is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    /// Closing it stops the child; it is closed too when this process dies.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program with other arguments.
    pub(crate) fn start(arguments: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or("the child has no stdout")?;
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    /// Writes a line to the child's stdin.
    pub(crate) fn write_line(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("the child has no stdin")?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    /// Waits for a line of the child's stdout.
    pub(crate) fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the child ended early".into());
        }
        Ok(line.trim().to_owned())
    }

    /// Returns the processor time since its start.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu(&self.process.id().to_string())
    }

    /// Returns the peak of its resident memory in bytes, mapped files included.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        peak_memory(&self.process.id().to_string())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

/// Returns the processor time of a process; `self` is this process.
pub(crate) fn cpu(process: &str) -> Result<Duration> {
    times(process, 2)
}

/// Returns the processor time of a process and of its children that have ended.
pub(crate) fn cpu_with_ended(process: &str) -> Result<Duration> {
    times(process, 4)
}

/// Returns the sum of the first `first` of utime, stime, cutime and cstime.
fn times(process: &str, first: usize) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let ticks = fields(&stat).ok_or("unexpected format of /proc/PID/stat")?.skip(11).take(first);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Returns the parent process id of a process's folder in `/proc`.
pub(crate) fn parent(folder: &Path) -> Option<String> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    fields(&stat)?.nth(1).map(str::to_owned)
}

/// Returns the fields of a stat line after the name: state, parent, and so on. The name may contain anything up to
/// the last parenthesis.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace())
}

/// Returns the peak of a process's resident memory in bytes; `self` is this process.
pub(crate) fn peak_memory(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/PID/status")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// Builds a runtime like that of svc's server.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// In the child: prints its address.
pub(crate) fn print_address(address: SocketAddr) -> Result<()> {
    print_line(&address.to_string())
}

/// In the child: prints a line for the parent.
pub(crate) fn print_line(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// In the child: completes when stdin is closed.
pub(crate) async fn stdin_closed() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}
