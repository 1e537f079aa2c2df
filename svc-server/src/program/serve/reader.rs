//! What the clients of a connection take of its responses, for the memory that responses share.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapFrame;
use hyper::body::Frame;

use crate::ResponseBody;
use crate::api::response_memory::Reader;

type CountFrame = Box<dyn FnMut(Frame<Bytes>) -> Frame<CountedBytes> + Send>;

/// The body of a response, whose reader is told what is written of it.
pub(super) type CountedBody = MapFrame<ResponseBody, CountFrame>;

/// Bytes of a response. hyper and h2 advance them as they are written.
pub(super) struct CountedBytes {
    bytes: Bytes,
    reader: Arc<Reader>,
}

/// Counts what is written of a body.
pub(super) fn count(body: ResponseBody, reader: Arc<Reader>) -> CountedBody {
    body.map_frame(Box::new(move |frame| frame.map_data(|bytes| CountedBytes { bytes, reader: Arc::clone(&reader) })))
}

impl Buf for CountedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.reader.took(count);
    }
}
