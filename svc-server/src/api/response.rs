//! An answer that went well, before it gets the headers that every answer has.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;

/// Status, body, and what particular headers say.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiResponse {
    /// Status.
    pub status: StatusCode,
    /// JSON, or nothing for 204.
    pub body: Bytes,
    /// Where the created resource is.
    pub location: Option<String>,
    /// Strong tag of the resource's representation.
    pub etag: Option<String>,
    /// Whether this is the kept answer to an earlier request.
    pub replayed: bool,
}

impl ApiResponse {
    /// An answer with a JSON body.
    ///
    /// # Errors
    /// [`StoreError::Internal`] when `value` does not serialise.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, StoreError> {
        let body = serde_json::to_vec(value).map_err(|error| StoreError::Internal(error.to_string()))?.into();
        Ok(Self { status, body, location: None, etag: None, replayed: false })
    }

    /// 204.
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Bytes::new(), location: None, etag: None, replayed: false }
    }

    /// With the tag of its own body.
    #[must_use]
    pub fn tagged(mut self) -> Self {
        self.etag = Some(etag(&self.body));
        self
    }

    /// What is kept of it under an Idempotency-Key.
    pub fn record(&self, fingerprint: [u8; 32], created_at: svc_core::values::Timestamp) -> StoredResponse {
        StoredResponse {
            fingerprint,
            status: self.status.as_u16(),
            location: self.location.clone(),
            etag: self.etag.clone(),
            body: self.body.to_vec(),
            created_at,
        }
    }

    /// The answer that was kept.
    pub fn replay(recorded: StoredResponse) -> Self {
        Self {
            status: StatusCode::from_u16(recorded.status).unwrap_or(StatusCode::OK),
            body: recorded.body.into(),
            location: recorded.location,
            etag: recorded.etag,
            replayed: true,
        }
    }
}

/// The strong tag of a representation: 128 bits of its SHA-256.
pub fn etag(representation: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&sha256(representation)[..16]))
}
