//! Simulated endpoints and their behaviours.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// The timeout of an attempt, which the client enforces.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// Accepts every delivery within 200 ms.
    Healthy,
    /// Accepts every delivery, just before the timeout.
    Slow,
    /// Never responds.
    Hanging,
    /// Refuses the connection.
    Dead,
    /// Responds with this status and, if given, this `Retry-After` in seconds.
    Refusing(i32, Option<u64>),
    /// Is down and up alternately, for this number of seconds each.
    Flapping(u64),
    /// Accepts this percentage of deliveries.
    Flaky(u32),
    /// Is down for the first tenth of a second of every minute.
    Blipping,
    /// Is down for this number of seconds at the beginning of every quarter of an hour, at most 90.
    Restarting(u64),
    /// Accepts this number of deliveries a second. It asks for a pause of a second by 429 when more arrive.
    Throttling(u32),
}

/// The response to an attempt, or the failure in its place.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: i32,
    pub(crate) duration: Duration,
    pub(crate) error: Option<&'static str>,
    pub(crate) retry_after: Option<Duration>,
}

impl Response {
    pub(crate) fn new(status: i32, millis: u64, error: Option<&'static str>) -> Self {
        Self { status, duration: Duration::from_millis(millis), error, retry_after: None }
    }

    pub(crate) fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Behaviour {
    pub(crate) fn any(rng: &mut StdRng) -> Self {
        match rng.random_range(0..15) {
            0..3 => Self::Healthy,
            3 => Self::Slow,
            4 => Self::Hanging,
            5 => Self::Dead,
            6 => Self::Refusing([302, 404, 410, 500, -1][rng.random_range(0..5)], None),
            7 => Self::Refusing([429, 503][rng.random_range(0..2)], Some(rng.random_range(0..40_000))),
            8..10 => Self::Flapping(rng.random_range(1..3_600)),
            10..12 => Self::Flaky(rng.random_range(1..100)),
            12 => Self::Blipping,
            13 => Self::Restarting(rng.random_range(1..90)),
            _ => Self::Throttling(rng.random_range(1..10)),
        }
    }

    /// Returns whether every delivery arrives, at the latest by a retry.
    pub(crate) fn takes_every_delivery(self) -> bool {
        matches!(self, Self::Healthy | Self::Slow | Self::Blipping | Self::Restarting(_) | Self::Throttling(_))
    }

    /// Returns the response to an attempt that starts `now` microseconds into the scenario, and is the `nth` of its second.
    pub(crate) fn respond(self, now: u64, nth: u32, rng: &mut StdRng) -> Response {
        let quick = rng.random_range(1..200);
        let accepted = Response::new([200, 201, 204, 299][rng.random_range(0..4)], quick, None);
        let refused = |status| Response::new(status, quick, Some("status"));
        let dead = Response::new(0, quick, Some("connect: refused"));
        match self {
            Self::Healthy => accepted,
            Self::Slow => Response { duration: Duration::from_millis(rng.random_range(5_000..9_990)), ..accepted },
            Self::Hanging => Response { duration: TIMEOUT, ..Response::new(0, 0, Some("timeout")) },
            Self::Dead => dead,
            Self::Refusing(-1, _) => Response::new(-1, quick, Some("blocked: 127.0.0.1 is not public")),
            Self::Refusing(status, wait) => Response { retry_after: wait.map(Duration::from_secs), ..refused(status) },
            Self::Flapping(seconds) if (now / 1_000_000 / seconds).is_multiple_of(2) => dead,
            Self::Flapping(_) => accepted,
            Self::Flaky(percent) if rng.random_range(0..100) < percent => accepted,
            Self::Flaky(_) => refused(500),
            Self::Blipping if now % 60_000_000 < 100_000 => dead,
            Self::Restarting(seconds) if now / 1_000_000 % 900 < seconds => dead,
            Self::Throttling(rate) if nth > rate => {
                Response { retry_after: Some(Duration::from_secs(1)), ..refused(429) }
            }
            Self::Blipping | Self::Restarting(_) | Self::Throttling(_) => accepted,
        }
    }
}
