//! HTTP/2 frames written by hand (RFC 9113), for tests that no client library could perform.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::Result;

/// The connection preface of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types (RFC 9113 §6).
pub mod kind {
    #![expect(missing_docs, reason = "named as in the RFC")]
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
}

/// Flag: the frame is the last of its request or response.
pub const END_STREAM: u8 = 0x1;
/// Flag: the frame acknowledges a SETTINGS or PING frame.
pub const ACK: u8 = 0x1;
/// Flag: the frame completes the header block.
pub const END_HEADERS: u8 = 0x4;

/// Setting: the greatest number of concurrent streams.
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
/// Setting: the initial flow-control window of a stream, in bytes.
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// Error code: the stream was refused before any processing.
pub const REFUSED_STREAM: u32 = 0x7;
/// Error code: the peer causes excessive load.
pub const ENHANCE_YOUR_CALM: u32 = 0xb;

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The frame type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream id; 0 is the connection itself.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Reads a frame. Returns `None` at the end of the connection.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> Result<Option<Self>> {
        let mut head = [0; 9];
        if from.read_exact(&mut head).await.is_err() {
            return Ok(None);
        }
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        from.read_exact(&mut payload).await?;
        Ok(Some(Self { kind, flags, stream: u32::from_be_bytes(stream) & !(1 << 31), payload }))
    }

    /// Returns the 32-bit number at an offset of the payload, such as an error code or a window size.
    pub fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Returns the settings of a SETTINGS frame.
    pub fn settings(&self) -> Vec<(u16, u32)> {
        let pairs = self.payload.chunks_exact(6).filter(|_| self.kind == kind::SETTINGS);
        pairs
            .map(|six| (u16::from_be_bytes([six[0], six[1]]), u32::from_be_bytes([six[2], six[3], six[4], six[5]])))
            .collect()
    }

    /// Returns whether this is the head of a response with this status. Only statuses with an index in HPACK's static
    /// table are recognized.
    pub fn has_status(&self, status: u16) -> bool {
        let known = [200, 204, 206, 304, 400, 404, 500].iter().position(|known| *known == status);
        let indexed = known.and_then(|at| u8::try_from(0x88 + at).ok());
        self.kind == kind::HEADERS && self.payload.first().copied() == indexed
    }
}

/// Returns the bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// Returns a SETTINGS frame.
pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

/// Returns a RST_STREAM frame, with which a client cancels a request.
pub fn cancel(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// Returns a WINDOW_UPDATE frame.
pub fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// Returns a header field as an HPACK literal without indexing (RFC 7541 §6.2.2). Name and value may have at most 126
/// bytes each.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(0x7e);
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

/// Returns the header block of a request.
pub fn head(method: &str, path: &str, key: &str) -> Vec<u8> {
    let authorization = format!("Bearer {key}");
    let fields = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
        ("authorization", &authorization),
        ("content-type", "application/json"),
    ];
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// Returns a HEADERS frame. With `END_STREAM` in `flags` the request has no body.
pub fn request(stream: u32, method: &str, path: &str, key: &str, flags: u8) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS | flags, stream, &head(method, path, key))
}
