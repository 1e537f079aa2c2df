//! Prints what is new, until Ctrl-C.

use std::io;
use std::pin::pin;
use std::time::Duration;

use crate::exit::Failure;
use crate::output::{self, Outcome};
use crate::service::Service;

/// The interval at which a database is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The interval of a server elsewhere, which has rate limits.
const POLL_INTERVAL_OF_SERVER: Duration = Duration::from_secs(3);

/// Prints the lines that each poll returns.
pub(super) async fn follow(
    service: &Service,
    mut poll: impl AsyncFnMut() -> Result<Vec<String>, Failure>,
) -> Result<Outcome, Failure> {
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let interval = if service.is_server() { POLL_INTERVAL_OF_SERVER } else { POLL_INTERVAL };
    loop {
        for line in poll().await? {
            match output::write_now(&line) {
                // A closed pipe ends the command without an error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Outcome::nothing()),
                written => written?,
            }
        }
        tokio::select! {
            biased;
            _ = &mut interrupted => return Ok(Outcome::nothing()),
            () = tokio::time::sleep(interval) => {}
        }
    }
}
