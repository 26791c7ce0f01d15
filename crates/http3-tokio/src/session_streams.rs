//! The streams of one session of an extension.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use courser_quic::hooks::{ConnectionHooks as _, SendStreamHooks as _, Ticket};
use courser_quic::{Direction, RecvStream, SendStream, StreamId};

use super::claimed::{ClaimedStream, Lanes};
use super::error::Error;
use super::extension::Extension;

/// The streams of one session, which name the request that has opened it
/// ([`Extensions::by_session`](super::Extensions::by_session)).
///
/// Returned by [`Extension::session`]. As many streams wait to be accepted as the peer may open: the transport
/// bounds them, and an application that accepts late loses none. Dropping it, or calling [`end`](Self::end), ends
/// the session: streams that wait and that follow are refused with
/// [`SessionCodes::over`](super::SessionCodes::over).
///
/// What is sent on its streams has the urgency of the request (RFC 9218), and follows it when that changes. Sessions of one
/// urgency, and the requests of that urgency together, share by bytes, so that
/// priorities and orders of streams have an effect inside their session only.
///
/// ```no_run
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # async fn run(connection: courser::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// use courser::h3;
/// let codes = h3::SessionCodes {
///     unknown: h3::Code::from_value(0x3994_bd84),
///     over: h3::Code::from_value(0x170d_7b68),
/// };
/// let mut config = h3::Config::new(courser::Side::Client);
/// config.extensions = h3::Extensions::new()
///     .named("webtransport")
///     .setting(0x2b60_3742, 1)?
///     .announced_by(0x2b60_3742)
///     .unidirectional_stream(0x54)?
///     .bidirectional_stream(0x41)?
///     .by_session(codes);
/// let client = h3::Client::with_config(connection, config);
/// let connect = http::Request::get("https://example.org/echo")
///     .extension(h3::Protocol::new("webtransport").ok_or("no token")?)
///     .body(())?;
/// let upgraded = client.connect(connect).await?.into_body();
/// let webtransport = client.extension().group("webtransport");
/// let webtransport = webtransport.ok_or("no such group")?;
/// println!("announced by {:x?}", webtransport.announced().await?);
/// let session = webtransport.session(upgraded.stream());
/// let session = session.ok_or("registered before")?;
/// let (mut send, _receive) = session.open_bi(0x41).await?;
/// send.write_all(b"hello").await?;
/// while let Some(mut stream) = session.accept_uni().await? {
///     let first = stream.receive.read_chunk(1000).await?;
///     println!("{:?} begins with {first:?}", stream.id());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SessionStreams {
    extension: Extension,
    request: StreamId,
    /// The settings of the peer have announced the group.
    is_supported: AtomicBool,
}

impl Extension {
    /// Registers a session, whose streams are then delivered to the returned queue. `request` is the stream of
    /// its CONNECT. Streams that have arrived before are in the queue.
    ///
    /// Streams of sessions that are not registered wait for up to 5 s: up to 16 of a connection on a server (limit K585),
    /// and 2048 on a client (limit K589). A server registers a session before it sends the response, so that all streams
    /// which the client then opens find it.
    ///
    /// Returns `None` if the session is registered, or over.
    ///
    /// # Panics
    /// Panics if the group does not deliver streams
    /// [by session](super::Extensions::by_session), or if the stream cannot be that of a request.
    pub fn session(&self, request: StreamId) -> Option<SessionStreams> {
        self.check_session(request);
        let is_new = self.0.register_session(self.in_group(), request.value());
        if is_new {
            self.quic().begin_session(request);
        }
        is_new.then(|| SessionStreams::new(self.clone(), request))
    }

    /// Refuses the streams of a session whose request was refused, those that wait and those that follow, with
    /// [`SessionCodes::over`](super::SessionCodes::over).
    ///
    /// # Panics
    /// The panics of [`session`](Self::session).
    pub fn refuse_session(&self, request: StreamId) {
        self.check_session(request);
        self.0.end_session(self.in_group(), request.value());
    }

    fn check_session(&self, request: StreamId) {
        let codes = self.0.extensions().session_codes(self.in_group());
        assert!(codes.is_some(), "the group is not delivered by session");
        let value = request.value();
        assert!(value.is_multiple_of(4), "stream {value} is not a request");
    }
}

impl SessionStreams {
    const fn new(extension: Extension, request: StreamId) -> Self {
        Self {
            extension,
            request,
            is_supported: AtomicBool::new(false),
        }
    }

    /// Returns the stream of the request, whose ID is the number of the session.
    pub const fn request(&self) -> StreamId {
        self.request
    }

    /// Returns the group of extensions to which the session belongs.
    pub const fn extension(&self) -> &Extension {
        &self.extension
    }

    /// Waits for the next bidirectional stream of the peer. Its [`receive`](ClaimedStream::receive) starts after
    /// the number of the session. Returns `None` after [`end`](Self::end).
    ///
    /// # Errors
    /// Returns [`Error::Connection`] if the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept_bi(&self) -> Result<Option<ClaimedStream>, Error> {
        self.accept(Lanes::Bidirectional).await
    }

    /// Waits for the next unidirectional stream of the peer, like [`accept_bi`](Self::accept_bi).
    ///
    /// # Errors
    /// The errors of [`accept_bi`](Self::accept_bi).
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept_uni(&self) -> Result<Option<ClaimedStream>, Error> {
        self.accept(Lanes::Unidirectional).await
    }

    async fn accept(&self, lanes: Lanes) -> Result<Option<ClaimedStream>, Error> {
        let mut wait = Wait {
            session: self,
            lanes,
            ticket: None,
        };
        let (shared, group) = (&self.extension.0, self.extension.in_group());
        let Some(sessions) = shared.claimed.sessions(group) else {
            return Ok(None);
        };
        let number = self.request.value();
        let mut stream =
            poll_fn(|cx| sessions.poll_stream(cx, number, lanes, &mut wait.ticket)).await;
        if stream.is_none() && shared.quic.close_reason().is_some() {
            return Err(self.extension.lost());
        }
        if let Some(stream) = &mut stream {
            stream.receive.release();
        }
        if let Some(stream) = &stream
            && !stream.is_in_session
            && let Some(send) = &stream.send
        {
            send.set_session(self.request);
        }
        Ok(stream)
    }

    /// Opens a bidirectional stream and writes its signal and the number of the session. Waits for the peer's
    /// settings, and while the peer allows no stream.
    ///
    /// # Errors
    /// The errors of [`Extension::open_bi`].
    ///
    /// # Panics
    /// Panics if the group does not claim the signal.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_bi(&self, signal: u64) -> Result<(SendStream, RecvStream), Error> {
        let opening = self.open(Direction::Bidirectional, signal);
        match opening.await? {
            (send, Some(receive)) => Ok((send, receive)),
            (_, None) => Err(self.extension.lost()),
        }
    }

    /// Opens a unidirectional stream and writes its type and the number of the session, like
    /// [`open_bi`](Self::open_bi).
    ///
    /// # Errors
    /// The errors of [`Extension::open_uni`].
    ///
    /// # Panics
    /// Panics if the group does not claim the type.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_uni(&self, stream_type: u64) -> Result<SendStream, Error> {
        let opening = self.open(Direction::Unidirectional, stream_type);
        Ok(opening.await?.0)
    }

    async fn open(
        &self,
        direction: Direction,
        signal: u64,
    ) -> Result<(SendStream, Option<RecvStream>), Error> {
        let extension = &self.extension;
        if !self.is_supported.load(Relaxed) {
            // Boxed, because only the first stream may have to wait.
            Box::pin(extension.supported()).await?;
            self.is_supported.store(true, Relaxed);
        }
        let opening = extension.open_in_session(direction, signal, self.request);
        opening.await
    }

    /// Ends the session. Tasks that wait for its streams get `None`; streams that wait and that follow are
    /// refused. Open streams continue. Further calls have no effect.
    pub fn end(&self) {
        let (shared, group) = (&self.extension.0, self.extension.in_group());
        shared.end_session(group, self.request.value());
    }
}

impl Drop for SessionStreams {
    fn drop(&mut self) {
        self.end();
    }
}

/// A wait for a stream. Dropping it removes the waiting task.
struct Wait<'a> {
    session: &'a SessionStreams,
    lanes: Lanes,
    ticket: Ticket,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let extension = &self.session.extension;
        if let Some(sessions) = extension.0.claimed.sessions(extension.in_group()) {
            let number = self.session.request.value();
            sessions.forget(number, self.lanes, &mut self.ticket);
        }
    }
}
