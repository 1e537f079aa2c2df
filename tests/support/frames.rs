//! HTTP/2 frames by hand (RFC 9113), for what no client library would send.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::Result;

/// What a client begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames (RFC 9113 §6).
pub mod kind {
    #![expect(missing_docs, reason = "they are named as in the RFC")]
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
}

/// The request, or the answer, ends with this frame.
pub const END_STREAM: u8 = 0x1;
/// This answers a SETTINGS or a PING.
pub const ACK: u8 = 0x1;
/// The head ends with this frame.
pub const END_HEADERS: u8 = 0x4;

/// The setting of how many requests may be under way.
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
/// The setting of how much of an answer may be sent unasked.
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// Why a stream is refused: it was not begun.
pub const REFUSED_STREAM: u32 = 0x7;
/// Why a connection is ended: too much.
pub const ENHANCE_YOUR_CALM: u32 = 0xb;

/// A frame as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Reads one; `None` at the end of the connection.
    ///
    /// # Errors
    /// The connection breaks in the middle of a frame.
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

    /// The number at `at` in its payload, as codes of errors and sizes of windows are.
    pub fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// The settings, if it carries some.
    pub fn settings(&self) -> Vec<(u16, u32)> {
        let pairs = self.payload.chunks_exact(6).filter(|_| self.kind == kind::SETTINGS);
        pairs
            .map(|six| (u16::from_be_bytes([six[0], six[1]]), u32::from_be_bytes([six[2], six[3], six[4], six[5]])))
            .collect()
    }

    /// Whether it is the head of an answer with this status, one of those that HPACK knows by a number.
    pub fn has_status(&self, status: u16) -> bool {
        let known = [200, 204, 206, 304, 400, 404, 500].iter().position(|known| *known == status);
        let indexed = known.and_then(|at| u8::try_from(0x88 + at).ok());
        self.kind == kind::HEADERS && self.payload.first().copied() == indexed
    }
}

/// A frame as it is sent.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// SETTINGS.
pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        settings.iter().flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

/// RST_STREAM: the client takes a request back.
pub fn cancel(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// WINDOW_UPDATE.
pub fn window(stream: u32, more: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

/// A field of a head, in HPACK's plainest form (RFC 7541 §6.2.2). Neither part is longer than 126 bytes.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(0x7e);
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

/// The fields of a request.
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

/// HEADERS: a whole request, with END_STREAM, or one whose body is to come.
pub fn request(stream: u32, method: &str, path: &str, key: &str, flags: u8) -> Vec<u8> {
    frame(kind::HEADERS, END_HEADERS | flags, stream, &head(method, path, key))
}
