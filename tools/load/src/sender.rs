//! Sends a request and receives its response, over any version of HTTP.

use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use courser::{HandshakeFailure, h3};
use courser_measure::{Direction, Moves};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};

use crate::request::HttpVersion;

/// Sends requests on a connection.
#[derive(Debug)]
pub(crate) enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
    /// Over HTTP/3, with the moves of the connection if it moves.
    Http3(h3::Client, Option<Arc<Moves>>),
}

/// The status, times and sizes of a complete response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The time at which the header section was complete.
    pub(crate) head: Instant,
    /// The time at which the response was complete.
    pub(crate) over: Instant,
    /// Bytes of content received.
    pub(crate) data: u64,
    /// Bytes of field lines received: uncompressed names and values.
    pub(crate) fields: u64,
}

/// The reason why a request has no complete response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExchangeError {
    /// The label under which reports count the error.
    pub(crate) label: String,
    /// True if the server has certainly not processed the request.
    pub(crate) is_unprocessed: bool,
}

impl Sender {
    pub(crate) fn version(&self) -> HttpVersion {
        match self {
            Self::Http1(_) => HttpVersion::Http1,
            Self::Http2(_) => HttpVersion::Http2,
            Self::Http3(..) => HttpVersion::Http3,
        }
    }

    /// Returns another sender for the same connection; `None` over HTTP/1.1.
    pub(crate) fn another(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
            Self::Http3(client, moves) => Some(Self::Http3(client.clone(), moves.clone())),
        }
    }

    /// Waits until a request can be sent. Returns false if the connection accepts no more requests.
    pub(crate) async fn is_ready(&mut self) -> bool {
        match self {
            Self::Http1(sender) => sender.ready().await.is_ok(),
            Self::Http2(sender) => sender.ready().await.is_ok(),
            Self::Http3(client, _) => !is_over(client),
        }
    }

    /// Sends a request and receives its complete response.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, ExchangeError> {
        match self {
            Self::Http1(sender) => {
                let response = sender.send_request(request).await;
                receive(response.map_err(of_hyper)?, of_hyper, None).await
            }
            Self::Http2(sender) => {
                let response = sender.send_request(request).await;
                receive(response.map_err(of_hyper)?, of_hyper, None).await
            }
            Self::Http3(client, moves) => {
                let _exchange = moves.as_ref().map(Moves::begin_exchange);
                let response = client.send(request).await;
                receive(response.map_err(of_h3)?, of_h3, moves.as_deref()).await
            }
        }
    }
}

/// Returns true if the connection accepts no more requests. Reads the flag for GOAWAY first, which is cheaper
/// than the lock of the connection.
fn is_over(client: &h3::Client) -> bool {
    client.goes_away() || client.quic().close_reason().is_some()
}

async fn receive<B>(
    response: Response<B>,
    to_error: impl Fn(B::Error) -> ExchangeError,
    moves: Option<&Moves>,
) -> Result<Answer, ExchangeError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let head = Instant::now();
    if let Some(moves) = moves {
        moves.on_bytes(Direction::Received, head);
    }
    let status = response.status().as_u16();
    let fields = size_of_fields(response.headers());
    let mut body = response.into_body();
    let (mut data, mut frames, mut has_waited) = (0, 0_u32, false);
    loop {
        let frame = poll_fn(|cx| {
            let frame = Pin::new(&mut body).poll_frame(cx);
            has_waited |= frame.is_pending();
            frame
        });
        let Some(frame) = frame.await else { break };
        let frame = frame.map_err(&to_error)?;
        data += frame.data_ref().map_or(0, |data| data.len() as u64);
        frames = frames.saturating_add(1);
        if let Some(moves) = moves {
            moves.on_bytes(Direction::Received, Instant::now());
        }
    }
    Ok(Answer {
        status,
        head,
        // Content in the same packet as the header section arrived at the same time, which saves reading the
        // clock.
        over: match has_waited || frames > 1 {
            true => Instant::now(),
            false => head,
        },
        data,
        fields,
    })
}

fn size_of_fields(headers: &HeaderMap) -> u64 {
    let status = ":status".len() + 3;
    let fields = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    (fields.sum::<usize>() + status) as u64
}

#[expect(clippy::needless_pass_by_value, reason = "signature of map_err")]
fn of_hyper(error: hyper::Error) -> ExchangeError {
    // The innermost error is the most specific one.
    let mut inner = error.source();
    while let Some(deeper) = inner.and_then(std::error::Error::source) {
        inner = Some(deeper);
    }
    let what = match inner {
        Some(inner) => match inner.downcast_ref::<std::io::Error>() {
            Some(io) => crate::label::of_io(io),
            None => inner.to_string(),
        },
        None if error.is_incomplete_message() || error.is_closed() => {
            "connection closed by the server".to_owned()
        }
        None => error.to_string(),
    };
    ExchangeError {
        label: what,
        is_unprocessed: error.is_canceled(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "signature of map_err")]
fn of_h3(error: h3::Error) -> ExchangeError {
    let late = HandshakeFailure::after_handshake(&error, "TLS");
    let label = match &error {
        _ if late.is_some() => late.map_or_else(String::new, |failure| failure.seen().to_owned()),
        h3::Error::Connection(lost) if lost.is_timeout() => "connection timed out".to_owned(),
        error => error.to_string(),
    };
    ExchangeError {
        label,
        is_unprocessed: error.is_unprocessed(),
    }
}
