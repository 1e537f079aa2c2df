//! Endpoints that answer as they like.

use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;

/// The deadline of an attempt, which the sender enforces.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// Takes everything within 200 ms.
    Healthy,
    /// Takes everything just before the deadline.
    Slow,
    /// Never answers.
    Hanging,
    /// Refuses the connection.
    Dead,
    /// Answers with this status, and perhaps asks for a wait in seconds.
    Refusing(i32, Option<u64>),
    /// Up and down in turn, for so many seconds each.
    Flapping(u64),
    /// Takes so many of a hundred.
    Flaky(u32),
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) took: Duration,
    pub(crate) error: Option<&'static str>,
    pub(crate) retry_after: Option<Duration>,
}

impl Answer {
    pub(crate) fn new(status: i32, millis: u64, error: Option<&'static str>) -> Self {
        Self { status, took: Duration::from_millis(millis), error, retry_after: None }
    }

    pub(crate) fn succeeded(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Behaviour {
    pub(crate) fn any(rng: &mut StdRng) -> Self {
        match rng.random_range(0..12) {
            0..3 => Self::Healthy,
            3 => Self::Slow,
            4 => Self::Hanging,
            5 => Self::Dead,
            6 => Self::Refusing([302, 404, 500, -1][rng.random_range(0..4)], None),
            7 => Self::Refusing([429, 503][rng.random_range(0..2)], Some(rng.random_range(0..40_000))),
            8..10 => Self::Flapping(rng.random_range(1..3_600)),
            _ => Self::Flaky(rng.random_range(1..100)),
        }
    }

    /// Whether every attempt succeeds.
    pub(crate) fn always_takes(self) -> bool {
        matches!(self, Self::Healthy | Self::Slow)
    }

    /// The answer to an attempt that begins `now` microseconds into the scenario.
    pub(crate) fn answer(self, now: u64, rng: &mut StdRng) -> Answer {
        let quick = rng.random_range(1..200);
        let taken = Answer::new([200, 201, 204, 299][rng.random_range(0..4)], quick, None);
        let refused = |status| Answer::new(status, quick, Some("status"));
        let dead = Answer::new(0, quick, Some("connect: refused"));
        match self {
            Self::Healthy => taken,
            Self::Slow => Answer { took: Duration::from_millis(rng.random_range(5_000..9_990)), ..taken },
            Self::Hanging => Answer { took: TIMEOUT, ..Answer::new(0, 0, Some("timeout")) },
            Self::Dead => dead,
            Self::Refusing(-1, _) => Answer::new(-1, quick, Some("blocked: 127.0.0.1 is not public")),
            Self::Refusing(status, wait) => Answer { retry_after: wait.map(Duration::from_secs), ..refused(status) },
            Self::Flapping(seconds) if (now / 1_000_000 / seconds).is_multiple_of(2) => dead,
            Self::Flapping(_) => taken,
            Self::Flaky(percent) if rng.random_range(0..100) < percent => taken,
            Self::Flaky(_) => refused(500),
        }
    }
}
