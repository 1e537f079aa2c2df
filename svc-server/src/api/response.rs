//! The response of an operation, before the headers are added that every response has.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::crypto::sha256;
use svc_core::error::StoreError;
use svc_core::values::Timestamp;

/// The status, body and particular headers of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiResponse {
    /// The status.
    pub status: StatusCode,
    /// The JSON body, empty for 204.
    pub body: Bytes,
    /// The value of `Location`: the path of the created record.
    pub location: Option<String>,
    /// The value of `ETag`: the strong tag of the record.
    pub etag: Option<String>,
    /// Whether this is the stored response to an earlier request with the same idempotency key.
    pub replayed: bool,
}

impl ApiResponse {
    /// Creates a response with a JSON body.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Internal`] when `value` cannot be serialized.
    pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, StoreError> {
        let mut body = serde_json::to_vec(value).map_err(|error| StoreError::Internal(error.to_string()))?;
        // The prompt of a shell does not follow the response of `curl` on its line.
        body.push(b'\n');
        Ok(Self { status, body: body.into(), location: None, etag: None, replayed: false })
    }

    /// Creates a 204 response.
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: Bytes::new(), location: None, etag: None, replayed: false }
    }

    /// Adds the ETag of the body.
    #[must_use]
    pub fn with_etag(mut self) -> Self {
        self.etag = Some(etag(&self.body));
        self
    }

    /// Converts the response to the form that is stored with an idempotency key.
    pub fn to_stored(&self, fingerprint: [u8; 32], created_at: Timestamp) -> StoredResponse {
        StoredResponse {
            fingerprint,
            status: self.status.as_u16(),
            location: self.location.clone(),
            etag: self.etag.clone(),
            body: self.body.to_vec(),
            created_at,
        }
    }

    /// Converts a stored response back, marked as replayed.
    pub fn from_stored(stored: StoredResponse) -> Self {
        Self {
            status: StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK),
            body: stored.body.into(),
            location: stored.location,
            etag: stored.etag,
            replayed: true,
        }
    }
}

/// Returns the strong ETag of a representation: 128 bits of its SHA-256 in hex.
pub fn etag(representation: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&sha256(representation)[..16]))
}
