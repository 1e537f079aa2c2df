//! The server as a process of its own.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Result;
use crate::options::Options;

/// How long a start may take.
const START: Duration = Duration::from_secs(30);
/// How long an orderly end may take; more than the server's own grace.
const STOP: Duration = Duration::from_secs(30);

/// A running server, which ends with its handle.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it on a database and waits until it listens.
    pub(crate) async fn start(options: &Options, database_url: &str) -> Result<Self> {
        let mut command = match &options.server {
            Some(program) => Command::new(program),
            None => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("serve");
                command
            }
        };
        // The key of the secrets is the one setting that the database depends on.
        let is_setting = |name: &str| name.starts_with("SVC_") && name != "SVC_SECRET_KEY";
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_setting)) {
            command.env_remove(name);
        }
        let timeout = humantime::format_duration(options.webhook_timeout).to_string();
        command
            .args(["--listen", "127.0.0.1:0", "--no-rate-limit", "--allow-private-webhooks"])
            .args(["--database-url", database_url, "--webhook-timeout", &timeout.replace(' ', "")])
            // Enough retries that an endpoint's mood never makes a delivery fail for good.
            .args(["--webhook-retry", "50ms,100ms,200ms,400ms,1s,2s"])
            .env("SVC_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("a server without a stdout")?;
        let mut line = String::new();
        tokio::time::timeout(START, BufReader::new(stdout).read_line(&mut line)).await??;
        let address = line.trim_end().strip_prefix("listening on http://").ok_or("the server does not start")?;
        Ok(Self { address: address.parse()?, child })
    }

    /// Ends it as a power cut would end the process: SIGKILL.
    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Ends it in order.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let id = self.child.id().ok_or("the server has ended by itself")?;
        Command::new("kill").arg(id.to_string()).status().await?;
        let status = tokio::time::timeout(STOP, self.child.wait()).await??;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}
