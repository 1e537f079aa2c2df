//! Processes of this program in another role, and what the kernel tells of them.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::Result;

/// `USER_HZ`, the unit of processor times in `/proc`: 100 on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// A process that ends when it is dropped.
pub(crate) struct Child {
    process: std::process::Child,
    /// Closed to stop it; also when this process dies.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a role.
    pub(crate) fn start(arguments: &[&OsStr]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or("a child without a stdout")?;
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    /// Hands it a line.
    pub(crate) fn tell(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().ok_or("a child without a stdin")?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    /// Waits for a line.
    pub(crate) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a child ended early".into());
        }
        Ok(line.trim().to_owned())
    }

    /// Processor time since its start.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        cpu(&self.process.id().to_string())
    }

    /// Most memory it ever held, in bytes, its share of mapped files included.
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

/// Processor time of a process, `self` for this one.
pub(crate) fn cpu(process: &str) -> Result<Duration> {
    times(process, 2)
}

/// The same, with that of its children that have ended.
pub(crate) fn cpu_with_ended(process: &str) -> Result<Duration> {
    times(process, 4)
}

/// The first of utime, stime, cutime and cstime.
fn times(process: &str, first: usize) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let ticks = fields(&stat).ok_or("an odd stat")?.skip(11).take(first);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The process that started the one of a folder in `/proc`.
pub(crate) fn parent(folder: &Path) -> Option<String> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    fields(&stat)?.nth(1).map(str::to_owned)
}

/// The fields of a stat after its name, which may hold anything up to the last parenthesis: state, parent, and so on.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace())
}

/// The high-water mark of a process's memory in bytes, `self` for this one.
pub(crate) fn peak_memory(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("an odd status")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

/// The runtime that svc's server has.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// In the child: says where it listens.
pub(crate) fn announce(address: SocketAddr) -> Result<()> {
    say(&address.to_string())
}

/// In the child: says something to the parent.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// In the child: ready when stdin ends.
pub(crate) async fn told_to_stop() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}
