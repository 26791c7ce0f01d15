//! Interim responses over HTTP/2, which hyper's server does not send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use courser_base::Mutex;
use courser_http3_tokio::hooks::{InterimSink, is_connection_specific};
use courser_http3_tokio::{InterimError, InterimOutcome};
use http::Response;
use http::header::CONTENT_LENGTH;

use super::credit::Placement;
use super::gather::{GatheredState, Gatherer};
use super::hpack::put_string;
use super::tags::{Tagger, Tags};
use crate::exchange::interim::{InterimOfRequest, InterimSource};

/// The interim responses of an HTTP/2 connection.
pub(crate) struct Http2Interim<S> {
    state: Arc<Mutex<GatheredState<S>>>,
    tags: Tags,
}

impl<S> Http2Interim<S> {
    /// Lets services send interim responses on the connection of `gatherer`. Call it before the first byte is read.
    /// Returns `None` if the system has no random numbers.
    pub(crate) fn new(gatherer: &Gatherer<S>) -> Option<Self> {
        let tags = Tags::new()?;
        let state = gatherer.0.clone();
        state.lock().tagger = Some(Box::new(Tagger::new(tags.clone())));
        Some(Self { state, tags })
    }
}

impl<S> std::fmt::Debug for Http2Interim<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http2Interim")
    }
}

impl<S: Send + 'static> InterimSource for Http2Interim<S> {
    fn begin(&self, head: &mut http::request::Parts) -> Option<Arc<dyn InterimOfRequest>> {
        let stream = self.tags.take(&mut head.headers)?;
        Some(Arc::new(Http2Request {
            stream,
            is_ended: AtomicBool::new(false),
            state: self.state.clone(),
        }))
    }
}

/// The interim responses of one request.
struct Http2Request<S> {
    stream: u32,
    /// True once the service has responded.
    is_ended: AtomicBool,
    state: Arc<Mutex<GatheredState<S>>>,
}

impl<S> std::fmt::Debug for Http2Request<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Http2Request").field(&self.stream).finish()
    }
}

impl<S: Send + 'static> InterimOfRequest for Http2Request<S> {
    fn end(&self) {
        self.is_ended.store(true, Relaxed);
    }
}

impl<S: Send + 'static> InterimSink for Http2Request<S> {
    fn send(&self, response: Response<()>) -> Result<InterimOutcome, InterimError> {
        if self.is_ended.load(Relaxed) {
            return Err(InterimError::Answered);
        }
        let frame = encode(self.stream, &response);
        let Some(frame) = frame else {
            return Ok(InterimOutcome::Unsupported);
        };
        let mut state = self.state.lock();
        match state.interim_placement(self.stream) {
            Placement::Now => {}
            Placement::Blocked => return Err(InterimError::TooManyUnread),
            Placement::TooLate => return Err(InterimError::GivenUp),
            Placement::Unsupported => return Ok(InterimOutcome::Unsupported),
        }
        let connection = state.keep_interim(&frame);
        drop(state);
        if let Some(connection) = connection {
            connection.wake();
        }
        Ok(InterimOutcome::Sent)
    }
}

/// Encodes a HEADERS frame with literals that change no dynamic table (RFC 7541 §6.2.2, §6.2.3). Returns `None` if it
/// is longer than clients must accept.
fn encode(stream: u32, response: &Response<()>) -> Option<Vec<u8>> {
    let mut frame = vec![0, 0, 0, HEADERS, END_HEADERS];
    frame.extend(stream.to_be_bytes());
    // Entry 8 of the static table is `:status`.
    frame.push(0x08);
    put_string(&mut frame, response.status().as_str().as_bytes());
    for (name, value) in response.headers() {
        if *name == CONTENT_LENGTH || is_connection_specific(name.as_str()) {
            continue;
        }
        frame.push(if value.is_sensitive() { 0x10 } else { 0 });
        put_string(&mut frame, name.as_str().as_bytes());
        put_string(&mut frame, value.as_bytes());
    }
    let len = u32::try_from(frame.len() - HEADER_LEN).ok()?;
    if len > MAX_FRAME {
        return None;
    }
    frame[..3].copy_from_slice(&len.to_be_bytes()[1..]);
    Some(frame)
}

const HEADERS: u8 = 1;
const END_HEADERS: u8 = 4;
const HEADER_LEN: usize = 9;
/// Largest payload of a frame that every client accepts (RFC 9113 §4.2).
const MAX_FRAME: u32 = 16_384;
