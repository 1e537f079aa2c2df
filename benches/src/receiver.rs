//! Webhook endpoints in this process: one that responds at once, and one that never does. They share the machine with
//! the server, so they do as little as possible.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::error::Result;
use crate::random::{DIGITS, digits_in};
use crate::{child, load};

const RESPONSE: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// More than the size of a delivery.
const BUFFER: usize = 16 * 1024;
/// The interval at which arrivals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The digits in the email of a contact, which identify its delivery.
pub(crate) type Tag = [u8; DIGITS];

/// Both endpoints.
pub(crate) struct Receiver {
    /// The endpoint that responds.
    pub(crate) address: SocketAddr,
    /// The endpoint that accepts connections and never responds.
    pub(crate) hanging: SocketAddr,
    recorded: Arc<Recorded>,
    /// The runtime of the endpoints.
    _runtime: Runtime,
}

#[derive(Default)]
struct Recorded {
    count: AtomicUsize,
    /// The open connections to the endpoint that responds.
    connections: AtomicUsize,
    hanging: AtomicUsize,
    /// The tag and the time of each arrival.
    arrivals: Mutex<Vec<(Tag, Instant)>>,
    /// The bytes of the first request.
    sample: OnceLock<Vec<u8>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Self> {
        let (runtime, recorded) = (child::runtime()?, Arc::<Recorded>::default());
        let bind = || runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let (answering, hanging) = (bind()?, bind()?);
        let addresses = (answering.local_addr()?, hanging.local_addr()?);
        let (one, other) = (Arc::clone(&recorded), Arc::clone(&recorded));
        runtime.spawn(async move {
            while let Ok((stream, _)) = answering.accept().await {
                let recorded = Arc::clone(&one);
                tokio::spawn(async move {
                    recorded.connections.fetch_add(1, Ordering::Relaxed);
                    serve(stream, &recorded).await;
                    recorded.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        runtime.spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = hanging.accept().await {
                open.push(stream);
                other.hanging.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { address: addresses.0, hanging: addresses.1, recorded, _runtime: runtime })
    }

    /// Returns the number of deliveries that have arrived.
    pub(crate) fn count(&self) -> usize {
        self.recorded.count.load(Ordering::Relaxed)
    }

    /// Waits until all who had connections to the endpoint that responds have closed them. Nothing more arrives then.
    pub(crate) fn wait_until_closed(&self, patience: Duration) -> Result<()> {
        self.wait_until(patience, |receiver| receiver.recorded.connections.load(Ordering::Relaxed) == 0)
    }

    /// Returns the number of connections to the endpoint that never responds.
    pub(crate) fn hanging_count(&self) -> usize {
        self.recorded.hanging.load(Ordering::Relaxed)
    }

    /// Returns the first request.
    pub(crate) fn sample(&self) -> Option<&[u8]> {
        self.recorded.sample.get().map(Vec::as_slice)
    }

    /// Returns the arrivals since the last call.
    pub(crate) fn take(&self) -> Vec<(Tag, Instant)> {
        std::mem::take(&mut *self.recorded.arrivals())
    }

    /// Waits until `enough` returns true.
    pub(crate) fn wait_until(&self, patience: Duration, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !enough(self) {
            if Instant::now() > deadline {
                return Err("deliveries did not arrive in time".into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Recorded {
    fn arrivals(&self) -> MutexGuard<'_, Vec<(Tag, Instant)>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(mut stream: TcpStream, recorded: &Recorded) {
    let _ = stream.set_nodelay(true);
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    // The loop ends when the sender closes the connection, or if a request exceeds the buffer.
    while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]).await {
        filled += read;
        let Some(length) = complete_length(&buffer[..filled]) else { continue };
        let arrived = Instant::now();
        recorded.sample.get_or_init(|| buffer[..length].to_vec());
        recorded.arrivals().push((digits_in(&buffer[..length]).unwrap_or_default(), arrived));
        recorded.count.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(RESPONSE).await.is_err() {
            return;
        }
        // The sender does not send the next request before the response.
        filled = 0;
    }
}

/// Returns the length of the first request, once it is complete.
fn complete_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = bytes[..head].split(|byte| *byte == b'\n').find_map(load::content_length)?;
    let length = head + 4 + body;
    (bytes.len() >= length).then_some(length)
}
