//! Extensions of HTTP/3 that the application implements (RFC 9114 §9).

use std::any::Any;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3::{self as http3, Code, FrameStream, Group, Scope};
use courser_quic::hooks::{ConnectionHooks as _, Ticket};
use courser_quic::telemetry::Http3Record;
use courser_quic::{Connection, Direction, RecvStream, SendStream, StreamId, WriteError};

use super::claimed::{ClaimedStream, ExtensionFrame, Queue};
use super::error::Error;
use super::failure::Origin;
use super::settings::GoingAway;
use super::shared::SharedConnection;

/// The streams and frames that the application has claimed on a connection
/// ([`Config::extensions`](super::Config::extensions)), those of one group.
///
/// It starts with the first group; [`group`](Self::group) returns the others.
///
/// Returned by [`Client::extension`](super::Client::extension),
/// [`ServerConnection::extension`](super::ServerConnection::extension) and
/// [`Serve::extension`](super::Serve::extension), and available to services in the extensions of each request.
/// It does not keep the connection open; requests, their bodies and [`Upgraded`](super::Upgraded) streams do.
///
/// At most 64 streams wait for [`accept`](Self::accept); further ones are refused with the code of
/// [`Extensions::refuse_with`](super::Extensions::refuse_with). At most 256 frames with 64 KiB wait for
/// [`next_frame`](Self::next_frame); a further frame ends its request, or the connection if it is on the control
/// stream, with `H3_EXCESSIVE_LOAD`.
///
/// ```no_run
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # async fn run(connection: courser::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use courser::h3;
/// let mut config = h3::Config::new(courser::Side::Client);
/// config.extensions = h3::Extensions::new()
///     .setting(0x7a11, 1)?
///     .announced_by(0x7a11)
///     .unidirectional_stream(0x7a11)?;
/// let client = h3::Client::with_config(connection, config);
/// let extension = client.extension();
/// let mut stream = extension.open_uni(0x7a11).await?;
/// stream.write_all(b"hello").await?;
/// while let Ok(mut stream) = extension.accept().await {
///     let first = stream.receive.read_chunk(1000).await?;
///     println!("{:?} begins with {first:?}", stream.id());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Extension(pub(super) Arc<SharedConnection>, Group);

/// Frames of claimed types that are sent before the header section of a message, as pairs of type and payload.
/// Add it to the extensions of an [`http::Request`] on a client, or an [`http::Response`] on a server. RFC 9114
/// §9 allows unknown frames anywhere in a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeadingFrames(pub Vec<(u64, Bytes)>);

impl Extension {
    pub(super) const fn new(shared: Arc<SharedConnection>) -> Self {
        Self(shared, Group::FIRST)
    }

    /// Returns the group of this [name](super::Extensions::named) on the same connection, or `None` if there is
    /// none.
    pub fn group(&self, name: &str) -> Option<Self> {
        let group = self.0.extensions().group(name)?;
        Some(Self(self.0.clone(), group))
    }

    /// Returns the value of the group ([`Extensions::with_value`](super::Extensions::with_value)), if it has this type.
    pub fn value<T: Any>(&self) -> Option<&T> {
        self.0.extensions().value(self.1)
    }

    /// Returns what the implementation of the group keeps for this connection, which the first call creates. It
    /// lives as long as the connection, and must not own a handle that keeps the connection open. `None` if the
    /// first call had another type, or the configuration has no extensions.
    pub fn state<T: Any + Send + Sync>(&self, create: impl FnOnce() -> T) -> Option<Arc<T>> {
        let state = self.0.claimed.state(self.1)?;
        let state = state.get_or_init(|| Arc::new(create()));
        state.clone().downcast().ok()
    }

    /// Waits for the peer's settings and returns those of
    /// [`Extensions::announced_by`](super::Extensions::announced_by) with which the peer has announced the
    /// group, with their values, in the order of the group. Empty for a group that needs no announcement.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn announced(&self) -> Result<Vec<(u64, u64)>, Error> {
        self.supported().await?;
        Ok(self.0.peer_announced(self.1))
    }

    /// Waits for the peer's settings and returns those that this crate does not implement, in order. `None` if
    /// the connection is closed before they arrive.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn settings(&self) -> Option<Vec<(u64, u64)>> {
        self.0.peer_settings().await?;
        Some(self.0.peer_other_settings())
    }

    /// Waits for the next claimed stream of the peer, unless streams are delivered
    /// [by session](super::Extensions::by_session).
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the peer has not announced the extension, and [`Error::Connection`] if
    /// the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept(&self) -> Result<ClaimedStream, Error> {
        self.supported().await?;
        let Some(queue) = self.0.claimed.queue(self.1) else {
            return Err(self.without_claims().await);
        };
        let mut waiting = QueueWait::of(queue);
        let accepted = poll_fn(|cx| waiting.poll(cx, Queue::poll_stream)).await;
        accepted.ok_or_else(|| self.lost())
    }

    /// Waits for the next claimed frame of the peer, in the order in which frames were read. A frame on a
    /// request stream is read with its message, before the content that follows it.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept), once all frames that have arrived are taken.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn next_frame(&self) -> Result<ExtensionFrame, Error> {
        self.supported().await?;
        let Some(queue) = self.0.claimed.queue(self.1) else {
            return Err(self.without_claims().await);
        };
        let mut waiting = QueueWait::of(queue);
        let frame = poll_fn(|cx| waiting.poll(cx, Queue::poll_frame)).await;
        frame.ok_or_else(|| self.lost())
    }

    /// Opens a unidirectional stream and writes its type. Waits for the peer's settings, and while the peer
    /// allows no stream.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Panics
    /// Panics if the type is not claimed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_uni(&self, stream_type: u64) -> Result<SendStream, Error> {
        let claimed_by = self.0.extensions().unidirectional(stream_type);
        assert!(
            claimed_by == Some(self.1),
            "{stream_type:#x} is not claimed by the group"
        );
        self.supported().await?;
        let mut send = self.0.quic.open_uni().await?;
        send.write_all(Header::new(stream_type).as_bytes()).await?;
        Ok(send)
    }

    /// Opens a bidirectional stream and writes the integer that claims it. Waits for the peer's settings, and
    /// while the peer allows no stream.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Panics
    /// Panics if the integer is not claimed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_bi(&self, signal: u64) -> Result<(SendStream, RecvStream), Error> {
        let claimed_by = self.0.extensions().bidirectional(signal);
        assert!(
            claimed_by == Some(self.1),
            "{signal:#x} is not claimed by the group"
        );
        self.supported().await?;
        let (mut send, receive) = self.0.quic.open_bi().await?;
        send.write_all(Header::new(signal).as_bytes()).await?;
        Ok((send, receive))
    }

    /// Sends a frame on the control stream. Waits for the peer's settings. Frames without flow control credit
    /// remain in memory.
    ///
    /// # Errors
    /// The errors of [`accept`](Self::accept).
    ///
    /// # Panics
    /// Panics if the type is not claimed for control streams, or the payload exceeds the claimed
    /// length.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing.
    pub async fn send_frame(&self, frame_type: u64, payload: &[u8]) -> Result<(), Error> {
        let extensions = self.0.extensions();
        let group = extensions.group_of_frame(frame_type, FrameStream::Control);
        let longest = extensions.longest_frame(frame_type, FrameStream::Control);
        assert!(
            group == Some(self.1) && longest.is_some_and(|longest| payload.len() <= longest),
            "{frame_type:#x} is not claimed with this length"
        );
        self.supported().await?;
        let sent = self.0.drive(|state| {
            state.http.send_frame(frame_type, payload);
            Ok(())
        });
        sent.map_err(|error| self.0.failure_of(error).into())
    }

    /// Closes the connection because the peer has violated a rule of the extension.
    pub fn fail(&self, code: Code, reason: &'static str) {
        let error = http3::Error {
            code,
            scope: Scope::Connection,
            reason,
        };
        // This closes the connection.
        let _ = self.0.drive(|_| Err::<(), _>(error));
    }

    /// Waits until either end announces with GOAWAY that the connection will end (RFC 9114 §5.2), and returns which
    /// end it was. Layers that keep a request open end it soon then. `None` if the connection is closed before.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing, and several tasks may wait.
    pub async fn going_away(&self) -> Option<Origin> {
        GoingAway::of(&self.0).await
    }

    /// Passes the record that `make` builds to the sinks of the connection. It is not built if no sink receives it.
    #[doc(hidden)]
    pub fn record(&self, make: impl FnOnce() -> Http3Record) {
        self.0.records.record(&self.0.quic, make);
    }

    /// Returns the QUIC connection for access to its addresses, statistics and exporters.
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }

    /// Waits until the peer has announced the extension, if that is required.
    pub(super) async fn supported(&self) -> Result<(), Error> {
        if self.0.extensions().announcements(self.1).is_empty() {
            return Ok(());
        }
        self.0.peer_settings().await.ok_or_else(|| self.lost())?;
        match self.0.peer_supports(self.1) {
            Some(true) => Ok(()),
            _ => {
                self.0.refuse_claimed(self.1);
                Err(Error::Unsupported)
            }
        }
    }

    /// Opens a stream in a session, and writes its type or signal and the number of the session. The peer supports the
    /// group.
    pub(super) async fn open_in_session(
        &self,
        direction: Direction,
        signal: u64,
        request: StreamId,
    ) -> Result<(SendStream, Option<RecvStream>), Error> {
        let extensions = self.0.extensions();
        let claimed_by = match direction {
            Direction::Bidirectional => extensions.bidirectional(signal),
            Direction::Unidirectional => extensions.unidirectional(signal),
        };
        assert!(
            claimed_by == Some(self.1),
            "{signal:#x} is not claimed by the group"
        );
        let header = Header::new(signal).followed_by(request.value());
        let header = header.as_bytes();
        let opening = self.0.quic.open_in_session(direction, request, header);
        let mut opened = opening.await?;
        if let Some(rest @ [_, ..]) = header.get(opened.written..) {
            // Boxed, because few streams have no room for it, and the future of each would reserve memory for the wait.
            match Box::pin(opened.send.write_all(rest)).await {
                // The peer has no use for the stream, which its next write reports.
                Ok(()) | Err(WriteError::Stopped(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((opened.send, opened.receive))
    }

    pub(super) const fn in_group(&self) -> Group {
        self.1
    }

    /// Waits for the end of a connection whose application has claimed nothing.
    async fn without_claims(&self) -> Error {
        self.0.quic.closed().await;
        self.lost()
    }

    pub(super) fn lost(&self) -> Error {
        match self.0.quic.close_reason() {
            Some(reason) => Error::Connection(reason),
            None => Error::closed(),
        }
    }
}

/// The beginning of a stream: its type, and the number of its session.
struct Header {
    bytes: [u8; LONGEST_HEADER],
    len: usize,
}

/// Two variable-length integers (RFC 9000 §16).
const LONGEST_HEADER: usize = 16;

impl Header {
    fn new(stream_type: u64) -> Self {
        let empty = Self {
            bytes: [0; LONGEST_HEADER],
            len: 0,
        };
        empty.followed_by(stream_type)
    }

    /// Adds a variable-length integer; there are at most two.
    fn followed_by(mut self, value: u64) -> Self {
        let (mark, len) = match value {
            0..=0x3f => (0, 1),
            0x40..=0x3fff => (1, 2),
            0x4000..=0x3fff_ffff => (2, 4),
            _ => (3, 8),
        };
        let marked = value | mark << (8 * len - 2);
        let encoded = marked.to_be_bytes();
        let places = self.bytes.iter_mut().skip(self.len);
        for (place, byte) in places.zip(encoded.into_iter().skip(8 - len)) {
            *place = byte;
        }
        self.len += len;
        self
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl LeadingFrames {
    /// Prepends the frames to an encoded header section.
    pub(super) fn prepend_to(&self, head: &[u8]) -> Vec<u8> {
        let frames = self.0.iter();
        let mut out: Vec<u8> = frames
            .flat_map(|(frame_type, payload)| http3::Connection::encode_frame(*frame_type, payload))
            .collect();
        out.extend_from_slice(head);
        out
    }
}

/// A wait for an element of the queue. Dropping it removes the waiting task.
struct QueueWait<'a> {
    queue: &'a Queue,
    ticket: Ticket,
}

impl<'a> QueueWait<'a> {
    fn of(queue: &'a Queue) -> Self {
        Self {
            queue,
            ticket: None,
        }
    }

    fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        poll: impl Fn(&'a Queue, &Context<'_>, &mut Ticket) -> Poll<T>,
    ) -> Poll<T> {
        poll(self.queue, cx, &mut self.ticket)
    }
}

impl Drop for QueueWait<'_> {
    fn drop(&mut self) {
        self.queue.forget(&mut self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_encoded_as_short_as_possible() {
        for (values, encoded) in [
            ([0x41, 0], &[0x40, 0x41, 0][..]),
            ([0x54, 0x3f], &[0x40, 0x54, 0x3f]),
            ([0x3f, 0x40], &[0x3f, 0x40, 0x40]),
            ([0x4000, 0x3fff], &[0x80, 0, 0x40, 0, 0x7f, 0xff]),
            (
                [1, 151_288_809_941_952_652],
                &[1, 0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
            ),
        ] {
            let header = Header::new(values[0]).followed_by(values[1]);
            assert_eq!(header.as_bytes(), encoded, "{values:x?}");
        }
        let longest = Header::new(u64::MAX >> 2).followed_by(u64::MAX >> 2);
        assert_eq!(longest.as_bytes(), [0xff; LONGEST_HEADER]);
    }
}
