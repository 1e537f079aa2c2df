//! Endpoints of the deliveries, in this process: one that answers at once, and one that never does. Like the load
//! generator, they share the machine with the server, so they do next to nothing.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::requests::{DIGITS, digits_in};
use crate::{Result, child, load};

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// More than a delivery.
const BUFFER: usize = 16 * 1024;
/// Between two looks whether something has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The address in a contact, which tells its deliveries from all others.
pub(crate) type Mark = [u8; DIGITS];

/// The endpoints.
pub(crate) struct Receiver {
    /// Answers.
    pub(crate) address: SocketAddr,
    /// Accepts connections and never answers.
    pub(crate) hanging: SocketAddr,
    noted: Arc<Noted>,
    /// Carries the endpoints.
    _runtime: Runtime,
}

#[derive(Default)]
struct Noted {
    count: AtomicUsize,
    hung: AtomicUsize,
    /// When each arrived, with its mark.
    arrivals: Mutex<Vec<(Mark, Instant)>>,
    /// The first request, byte by byte.
    sample: OnceLock<Vec<u8>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Self> {
        let (runtime, noted) = (child::runtime()?, Arc::<Noted>::default());
        let bind = || runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let (answering, hanging) = (bind()?, bind()?);
        let addresses = (answering.local_addr()?, hanging.local_addr()?);
        let (one, other) = (Arc::clone(&noted), Arc::clone(&noted));
        runtime.spawn(async move {
            while let Ok((stream, _)) = answering.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&one)));
            }
        });
        runtime.spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = hanging.accept().await {
                open.push(stream);
                other.hung.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self { address: addresses.0, hanging: addresses.1, noted, _runtime: runtime })
    }

    /// How many have arrived.
    pub(crate) fn count(&self) -> usize {
        self.noted.count.load(Ordering::Relaxed)
    }

    /// How many connections hang.
    pub(crate) fn hung(&self) -> usize {
        self.noted.hung.load(Ordering::Relaxed)
    }

    /// The first request that arrived.
    pub(crate) fn sample(&self) -> Option<&[u8]> {
        self.noted.sample.get().map(Vec::as_slice)
    }

    /// What has arrived since the last call.
    pub(crate) fn take(&self) -> Vec<(Mark, Instant)> {
        std::mem::take(&mut *self.noted.arrivals())
    }

    /// Waits until `enough` of its figures says so.
    pub(crate) fn until(&self, patience: Duration, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let deadline = Instant::now() + patience;
        while !enough(self) {
            if Instant::now() > deadline {
                return Err("deliveries do not arrive".into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Noted {
    fn arrivals(&self) -> MutexGuard<'_, Vec<(Mark, Instant)>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(mut stream: TcpStream, noted: Arc<Noted>) {
    let _ = stream.set_nodelay(true);
    let (mut buffer, mut filled) = (vec![0; BUFFER], 0);
    // The sender closes it, or asks for more than a delivery.
    while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]).await {
        filled += read;
        let Some(length) = whole(&buffer[..filled]) else { continue };
        let arrived = Instant::now();
        noted.sample.get_or_init(|| buffer[..length].to_vec());
        noted.arrivals().push((digits_in(&buffer[..length]).unwrap_or_default(), arrived));
        noted.count.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
        // Nobody sends the next one before the answer.
        filled = 0;
    }
}

/// The length of a request, once it is there whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let body = bytes[..head].split(|byte| *byte == b'\n').find_map(load::content_length)?;
    let length = head + 4 + body;
    (bytes.len() >= length).then_some(length)
}
