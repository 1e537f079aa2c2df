//! How requests reach the service.

use std::error::Error as StdError;

use bytes::Bytes;
use bytes::BytesMut;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::error::{Error, Result, TransportError};

/// A service in this process, which responds to requests without a connection.
pub trait Exchange: Send + Sync + 'static {
    /// Responds to a request. An error is that of the call, as [`Error::Exchange`]; it is not tried again.
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'_, ExchangeResult>;
}

/// The response of a service in this process, or any error of its own.
pub type ExchangeResult = std::result::Result<Response<Bytes>, Box<dyn StdError + Send + Sync>>;

/// The way of a request to the service.
pub(crate) enum Route {
    /// Over HTTP, with this header `Authorization`.
    Http { client: reqwest::Client, authorization: HeaderValue },
    /// To a service in this process.
    InProcess(Box<dyn Exchange>),
}

/// A response as it arrived. The body is that of a response of at most so many bytes, otherwise its start.
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: std::result::Result<Bytes, Bytes>,
}

impl Route {
    /// Sends a request once. `most` returns the most bytes that are read of a response with this status.
    pub(crate) async fn send(&self, request: Request<Bytes>, most: fn(StatusCode) -> usize) -> Result<Received> {
        match self {
            Self::InProcess(service) => {
                let (parts, body) = service.exchange(request).await.map_err(Error::Exchange)?.into_parts();
                Ok(Received { status: parts.status, headers: parts.headers, body: Ok(body) })
            }
            Self::Http { client, authorization } => {
                let mut request = reqwest::Request::try_from(request).map_err(TransportError::from)?;
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
                let mut response = client.execute(request).await.map_err(TransportError::from)?;
                let (status, headers) = (response.status(), response.headers().clone());
                let body = read(&mut response, most(status)).await?;
                Ok(Received { status, headers, body })
            }
        }
    }
}

/// Reads a body of at most `most` bytes. The inner error is the start of one that has more.
async fn read(response: &mut reqwest::Response, most: usize) -> Result<std::result::Result<Bytes, Bytes>> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(TransportError::from)? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Ok(Err(body.freeze()));
        }
    }
    Ok(Ok(body.freeze()))
}
