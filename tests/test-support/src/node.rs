//! A server as a separate process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use svc_server::program::config::Config;
use svc_server::telemetry;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::Result;
use crate::database::{Database, SECRET_KEY};

/// The longest time that a start may take.
const START: Duration = Duration::from_secs(30);
/// The longest time that a shutdown may take; more than the server's own grace period.
const STOP: Duration = Duration::from_secs(30);

/// How to start servers.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The server program. By default this program is started with `serve` as its first argument.
    pub file: Option<PathBuf>,
    /// The filter of the server's log, which goes to stderr.
    pub log: &'static str,
    /// Further environment variables.
    pub variables: Vec<(&'static str, OsString)>,
}

/// Runs the server: what a test program does as the child process of [`Program`].
pub fn serve(config: Config) -> ExitCode {
    telemetry::init(config.log_format);
    svc_server::program::run(config).map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

/// A running server, which is killed when its handle is dropped.
#[derive(Debug)]
pub struct Node {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The log, if it is piped.
    stderr: Option<JoinHandle<std::io::Result<String>>>,
    /// The address of the API.
    pub address: SocketAddr,
}

/// Returns the command that runs a program of svc without the settings of the environment.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SVC_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    command
}

impl Program {
    /// Starts a server on a database and waits until it listens.
    pub async fn start(&self, database: &Database, flags: &[&str]) -> Result<Node> {
        self.start_at(&database.url, database, flags).await
    }

    /// Starts a server with another URL for the database, such as that of a proxy.
    pub async fn start_at(&self, url: &str, database: &Database, flags: &[&str]) -> Result<Node> {
        self.launch(url, database, flags, Stdio::inherit()).await
    }

    /// Starts a server whose log is in a file.
    pub async fn start_logged(&self, database: &Database, flags: &[&str], log: File) -> Result<Node> {
        self.launch(&database.url, database, flags, log.into()).await
    }

    async fn launch(&self, url: &str, database: &Database, flags: &[&str], log: Stdio) -> Result<Node> {
        let mut command = match &self.file {
            Some(program) => command(program),
            None => {
                let mut command = command(std::env::current_exe()?);
                command.arg("serve");
                command
            }
        };
        command
            // It must match the database.
            .envs(std::env::var_os(SECRET_KEY).map(|key| (SECRET_KEY, key)))
            .args(["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--allow-private-webhooks"])
            .args(["--database-url", url])
            .args(flags)
            .envs(database.variables())
            .envs(self.variables.iter().cloned())
            .env("SVC_LOG", self.log)
            .stderr(log);
        Node::start(command).await
    }
}

impl Node {
    /// Starts a server, and waits until it prints its address.
    pub async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("the server has no stdout")?);
        let stderr = child.stderr.take().map(|mut stderr| {
            tokio::spawn(async move {
                let mut log = String::new();
                stderr.read_to_string(&mut log).await.map(|_| log)
            })
        });
        let mut line = String::new();
        tokio::time::timeout(START, stdout.read_line(&mut line)).await??;
        let address = line.strip_prefix("listening on http").and_then(|rest| rest.trim_end().split_once("://"));
        match (address, stderr) {
            (Some((_, address)), stderr) => Ok(Self { address: address.parse()?, child, stdout, stderr }),
            (None, Some(log)) => Err(format!("the server does not start: {line:?}: {}", log.await??).into()),
            (None, None) => Err(format!("the server does not start: {line:?}").into()),
        }
    }

    /// Returns the next line that the server prints, or nothing at the end.
    pub async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        tokio::time::timeout(START, self.stdout.read_line(&mut line)).await??;
        Ok(line)
    }

    /// Returns the process id.
    pub fn process(&self) -> u32 {
        self.child.id().expect("a running server")
    }

    /// Returns the process id while the process runs.
    pub fn id(&mut self) -> Option<u32> {
        match self.child.try_wait() {
            Ok(None) => self.child.id(),
            _ => None,
        }
    }

    /// Returns the resident memory in bytes, without swapped-out pages.
    pub fn memory(&self) -> Result<u64> {
        let id = self.child.id().ok_or("the server has ended by itself")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/PID/status")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }

    /// Kills the process with SIGKILL.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Sends a signal by its name, such as `STOP`.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let id = self.child.id().ok_or("the server has ended by itself")?;
        let sent = Command::new("kill").args(["-s", name, &id.to_string()]).status().await?;
        if sent.success() { Ok(()) } else { Err("the signal could not be sent to the server".into()) }
    }

    /// Stops the server with SIGTERM.
    pub async fn stop(self) -> Result<()> {
        let (status, ..) = self.stop_by("TERM").await?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    /// Stops the server with a signal. Returns its exit status, what else it printed, and its log if that is piped.
    pub async fn stop_by(mut self, signal: &str) -> Result<(ExitStatus, String, String)> {
        self.signal(signal).await?;
        let end = async {
            let mut rest = String::new();
            self.stdout.read_to_string(&mut rest).await?;
            let status = self.child.wait().await?;
            let log = match self.stderr {
                Some(log) => log.await??,
                None => String::new(),
            };
            Ok((status, rest, log))
        };
        tokio::time::timeout(STOP, end).await?
    }
}
