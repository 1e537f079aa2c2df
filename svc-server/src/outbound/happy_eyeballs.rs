//! Connecting to the first address of a host that responds, as Happy Eyeballs does (RFC 8305).
//!
//! The families alternate, beginning with that of the first address. The connection attempts start one after the other:
//! the next one as soon as the one before it fails, or after a delay while it is silent. They then go on side by side.
//! The first connection wins, and the other attempts are dropped. So an address that does not respond costs a delay,
//! and not the whole time that there is to connect.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

/// How long a connection attempt may be silent before the next one starts: the Connection Attempt Delay of RFC 8305.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Returns the first connection that `connect` makes to one of these addresses.
///
/// # Errors
/// The last error, when no address can be connected to.
///
/// # Cancel safety
/// Dropping the future drops all connection attempts.
pub(super) async fn connect_first<C, E, F>(addresses: &[SocketAddr], connect: impl Fn(SocketAddr) -> F) -> Result<C, E>
where
    E: From<io::Error>,
    F: Future<Output = Result<C, E>>,
{
    let mut waiting = alternate_families(addresses).into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut last_error = io::Error::new(io::ErrorKind::InvalidInput, "the host has no address").into();
    loop {
        attempts.extend(waiting.next().map(&connect));
        tokio::select! {
            attempt = attempts.next() => match attempt {
                Some(Ok(connection)) => return Ok(connection),
                Some(Err(error)) => last_error = error,
                None => return Err(last_error),
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if waiting.len() > 0 => {}
        }
    }
}

/// Returns the addresses with their families alternating, and otherwise in their order.
fn alternate_families(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.iter().partition(|address| address.is_ipv6() == first_is_ipv6);
    let pairs = (0..first.len().max(second.len())).flat_map(|index| [first.get(index), second.get(index)]);
    pairs.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;

    use svc_core::sync::lock;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// How an address behaves.
    #[derive(Clone, Copy)]
    enum Address {
        Silent,
        Refuses,
        /// Accepts the connection after this many milliseconds.
        Accepts(u64),
    }
    use Address::{Accepts, Refuses, Silent};

    /// Connects to addresses that behave like this. Returns the address that won, and when each attempt started, in
    /// milliseconds.
    async fn race(addresses: &[(&str, Address)]) -> (io::Result<String>, Vec<(String, u128)>) {
        let (started, attempts) = (Instant::now(), Mutex::new(Vec::new()));
        let list: Vec<SocketAddr> = addresses.iter().map(|(text, _)| text.parse().unwrap()).collect();
        let won = connect_first(&list, async |address: SocketAddr| {
            let text = address.to_string();
            lock(&attempts).push((text.clone(), started.elapsed().as_millis()));
            match addresses.iter().find(|(listed, _)| *listed == text).unwrap().1 {
                Silent => pending().await,
                Refuses => Err(io::Error::new(io::ErrorKind::ConnectionRefused, text)),
                Accepts(millis) => {
                    sleep(Duration::from_millis(millis)).await;
                    Ok(text)
                }
            }
        })
        .await;
        (won, attempts.into_inner().unwrap())
    }

    const V4: [&str; 3] = ["192.0.2.1:443", "192.0.2.2:443", "192.0.2.3:443"];
    const V6: [&str; 3] = ["[2001:db8::1]:443", "[2001:db8::2]:443", "[2001:db8::3]:443"];

    fn at(attempts: &[(&str, u128)]) -> Vec<(String, u128)> {
        attempts.iter().map(|(address, millis)| ((*address).to_owned(), *millis)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_of_either_family_delays_the_next_one_only() {
        for (silent, works) in [(V4[0], V6[0]), (V6[0], V4[0]), (V4[0], V4[1]), (V6[0], V6[1])] {
            let (won, attempts) = race(&[(silent, Silent), (works, Accepts(30))]).await;
            assert_eq!((won.unwrap(), attempts), (works.to_owned(), at(&[(silent, 0), (works, 250)])));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_families_alternate_from_that_of_the_first_address_on() {
        for (first, second) in [(V4, V6), (V6, V4)] {
            let all = [first[0], first[1], first[2], second[0]].map(|address| (address, Silent));
            let works = (second[1], Accepts(0));
            let (won, attempts) = race(&[all.as_slice(), &[works]].concat()).await;
            assert_eq!(won.unwrap(), second[1]);
            assert_eq!(attempts, at(&[(first[0], 0), (second[0], 250), (first[1], 500), (second[1], 750)]));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_attempt_starts_at_once_after_a_failure() {
        let addresses = [(V6[0], Refuses), (V4[0], Silent), (V6[1], Refuses), (V4[1], Accepts(0))];
        let (won, attempts) = race(&addresses).await;
        assert_eq!(won.unwrap(), V4[1]);
        assert_eq!(attempts, at(&[(V6[0], 0), (V4[0], 0), (V6[1], 250), (V4[1], 250)]));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_goes_on_beside_the_next_one() {
        let (won, attempts) = race(&[(V6[0], Accepts(260)), (V4[0], Accepts(260)), (V6[1], Silent)]).await;
        assert_eq!((won.unwrap(), attempts), (V6[0].to_owned(), at(&[(V6[0], 0), (V4[0], 250)])));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_is_returned_when_every_address_fails() {
        let (won, attempts) = race(&[(V6[0], Refuses), (V4[0], Refuses)]).await;
        assert_eq!((won.unwrap_err().to_string(), attempts.len()), (V4[0].to_owned(), 2));
        assert_eq!(race(&[]).await.0.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
