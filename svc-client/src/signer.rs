//! Signatures of requests (`docs/contract.md`, "Request signing"), by a clock that follows that of the service.

use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use http::Method;
use svc_core::accounts::signing::SignedRequest;
use svc_core::env::Env;
use svc_core::values::Secret;
use url::{Position, Url};

use crate::error::Error;

/// A clock that differs by so much from that of the service is wrong. Signatures may be 300 seconds off.
const WRONG_CLOCK_MICROS: u64 = 60_000_000;

/// Signs requests with the secret of a key.
pub(crate) struct Signer {
    secret: Secret,
    clock: Mutex<Clock>,
}

/// Times in microseconds.
#[derive(Default)]
struct Clock {
    /// How far the clock of the service is ahead of that of the client.
    ahead: i64,
    /// The timestamp of the last signature.
    last: i64,
}

impl Signer {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, clock: Mutex::default() }
    }

    /// Returns the headers with the timestamp and the signature of a request that changes something.
    pub(crate) fn sign(
        &self,
        method: &Method,
        url: &Url,
        body: &[u8],
        env: &Env,
    ) -> Option<[(&'static str, String); 2]> {
        if method == Method::GET {
            return None;
        }
        let micros = {
            let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
            // The service accepts a signature once, so no two have the same timestamp.
            clock.last = (env.now().as_micros() + clock.ahead).max(clock.last + 1);
            clock.last
        };
        let timestamp = format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let signature = SignedRequest {
            timestamp: &timestamp,
            method: method.as_str(),
            path_and_query: &url[Position::BeforePath..Position::AfterQuery],
            body,
        }
        .sign(&self.secret);
        Some([("x-svc-timestamp", timestamp), ("x-svc-signature", signature)])
    }

    /// Returns how far the clock that signs is ahead of the client's, in microseconds.
    pub(crate) fn ahead(&self) -> i64 {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).ahead
    }

    /// Returns whether a signature was refused because the clock that signed it was wrong, which was `signed_ahead` ahead of the
    /// client's. Takes the clock of the service from now on, unless another call has done so.
    pub(crate) fn corrects(&self, error: &Error, signed_ahead: i64, env: &Env) -> bool {
        let Some(refused) = error.api().filter(|error| error.code == "signature_invalid") else { return false };
        let date = refused.date.as_ref().and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let since_epoch = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
        let Some(micros) = since_epoch.and_then(|since| i64::try_from(since.as_micros()).ok()) else { return false };
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = micros - env.now().as_micros();
        if ahead.abs_diff(signed_ahead) < WRONG_CLOCK_MICROS {
            return false;
        }
        if ahead.abs_diff(clock.ahead) >= WRONG_CLOCK_MICROS {
            *clock = Clock { ahead, last: 0 };
        }
        true
    }
}
