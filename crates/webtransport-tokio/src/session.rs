//! Sessions, as applications use them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use courser_http3_tokio::{ClaimedStream, Code, Datagrams, Error};
use courser_quic::{Connection, SendRate};
use courser_webtransport::{
    ApplicationCode, CloseReason, Closed, Dialect, EXPORTER_LABEL, SessionId, StreamHeader,
    exporter_context,
};
use courser_wire::Direction;
use http::{HeaderValue, Uri};

use crate::closing::Closing;
use crate::error::{ExportError, SessionEnded};
use crate::receive_stream::RecvStream;
use crate::send_group::SendGroup;
use crate::send_stream::SendStream;
use crate::shared::{Credit, Handle, Shared};
use crate::stats::SessionStats;

/// A session of WebTransport: streams and datagrams beside the requests of a connection.
///
/// Clones share the session. It is [closed](Self::close) with code 0 when the last clone and the last of its streams
/// are dropped, and the peer may then lose what it has not read: wait for [`closed`](Self::closed) to let the peer
/// decide when it has everything.
#[derive(Clone, Debug)]
pub struct Session(Arc<Handle>);

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(Handle(shared)))
    }

    fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// Waits for the next bidirectional stream of the peer. Streams that have arrived are returned in the order in which
    /// the peer has opened them.
    ///
    /// # Errors
    /// Returns the reason of the end once the session has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        loop {
            let accepted = self.shared().streams.accept_bi().await;
            let stream = self.accepted(accepted).await?;
            if let (Some(send), receive) = self.enter(stream, Direction::Bidirectional) {
                return Ok((send, receive));
            }
        }
    }

    /// Waits for the next unidirectional stream of the peer. Streams that have arrived are returned in the order in which
    /// the peer has opened them.
    ///
    /// # Errors
    /// Returns the reason of the end once the session has ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept_uni(&self) -> Result<RecvStream, SessionEnded> {
        let accepted = self.shared().streams.accept_uni().await;
        let stream = self.accepted(accepted).await?;
        Ok(self.enter(stream, Direction::Unidirectional).1)
    }

    async fn accepted(
        &self,
        accepted: Result<Option<ClaimedStream>, Error>,
    ) -> Result<ClaimedStream, SessionEnded> {
        match accepted {
            Ok(Some(stream)) => Ok(stream),
            // The task of the session tells why: perhaps a close has arrived before the connection was lost.
            Ok(None) | Err(_) => Err(self.ended().await),
        }
    }

    /// Counts a stream of the peer. If the session has ended meanwhile, the stream is aborted.
    fn enter(
        &self,
        stream: ClaimedStream,
        direction: Direction,
    ) -> (Option<SendStream>, RecvStream) {
        let shared = self.shared();
        shared.counters.streams_accepted.fetch_add(1, Relaxed);
        let id = stream.id();
        let halves = 1 + u8::from(stream.send.is_some());
        let mut is_open = shared.add_stream(id, halves);
        if is_open && shared.has_flow_control {
            // A stream beyond the limit ends the session, and with it this stream.
            let counted = shared.update(|session, now| session.on_stream(now, direction));
            is_open = counted.is_ok();
        }
        // At most sixteen.
        let header = u8::try_from(stream.receive.header_len()).unwrap_or(u8::MAX);
        let (first, receive) = stream.receive.into_parts();
        let mut send = stream
            .send
            .map(|send| SendStream::new(self.0.clone(), send));
        let mut receive = RecvStream::new(self.0.clone(), first, receive, header);
        if !is_open {
            receive.give_up();
            send.iter_mut().for_each(SendStream::give_up);
        }
        (send, receive)
    }

    /// Opens a bidirectional stream. Waits while the peer allows none.
    ///
    /// # Errors
    /// Returns the reason of the end once the session has ended.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), SessionEnded> {
        let shared = self.shared();
        let direction = Direction::Bidirectional;
        let credit = shared.stream_credit(direction).await;
        let credit = credit.map_err(SessionEnded)?;
        let turn = shared.turn_to_open(direction).await;
        let opened = shared.streams.open_bi(StreamHeader::BIDIRECTIONAL).await;
        drop(turn);
        let Ok((send, receive)) = opened else {
            return Err(self.ended().await);
        };
        credit.into_iter().for_each(Credit::on_opened);
        shared.counters.streams_opened.fetch_add(1, Relaxed);
        let is_open = shared.add_stream(send.id(), 2);
        let mut send = SendStream::new(self.0.clone(), send);
        let mut receive = RecvStream::new(self.0.clone(), Bytes::new(), receive, 0);
        if !is_open {
            send.give_up();
            receive.give_up();
            return Err(self.ended().await);
        }
        Ok((send, receive))
    }

    /// Waits for the reason of the end. Boxed, because nearly no stream needs it.
    async fn ended(&self) -> SessionEnded {
        SessionEnded(Box::pin(self.shared().closed()).await)
    }

    /// Opens a unidirectional stream. Waits while the peer allows none.
    ///
    /// # Errors
    /// Returns the reason of the end once the session has ended.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready opens no stream, or one that ends at once.
    pub async fn open_uni(&self) -> Result<SendStream, SessionEnded> {
        let shared = self.shared();
        let credit = shared.stream_credit(Direction::Unidirectional).await;
        let credit = credit.map_err(SessionEnded)?;
        let turn = shared.turn_to_open(Direction::Unidirectional).await;
        let opened = shared.streams.open_uni(StreamHeader::UNIDIRECTIONAL).await;
        drop(turn);
        let Ok(send) = opened else {
            return Err(self.ended().await);
        };
        credit.into_iter().for_each(Credit::on_opened);
        shared.counters.streams_opened.fetch_add(1, Relaxed);
        let is_open = shared.add_stream(send.id(), 1);
        let mut send = SendStream::new(self.0.clone(), send);
        if !is_open {
            send.give_up();
            return Err(self.ended().await);
        }
        Ok(send)
    }

    /// Creates a group of streams: see [`SendStream::set_group`].
    pub fn send_group(&self) -> SendGroup {
        SendGroup::new(self.shared())
    }

    /// Returns an estimate of the rate at which the path delivers what is sent: see
    /// [`Connection::send_rate`](courser_quic::Connection::send_rate). It is that of the whole connection.
    pub fn send_rate(&self) -> Option<SendRate> {
        self.quic().send_rate()
    }

    /// Returns the datagrams of the session: to send, to receive, in batches, with their largest size and the number
    /// of those that were dropped.
    ///
    /// Up to 1024 datagrams with 1 MiB wait to be received (limit K587), and the oldest are dropped beyond that.
    pub fn datagrams(&self) -> &Datagrams {
        &self.shared().datagrams
    }

    /// Closes the session with a code and a message, of which at most 1024 bytes are sent. All its streams are reset.
    /// Has no effect if the session has ended.
    ///
    /// It does not wait: a task delivers the reason while the connection exists. The returned future waits until the
    /// peer has acknowledged it, for programs that end afterwards; it may be dropped.
    pub fn close(&self, code: u32, message: &str) -> Closing {
        self.shared()
            .close(CloseReason::new(ApplicationCode(code), message));
        Closing::new(self.0.0.clone())
    }

    /// Waits for the end of the session, and returns its reason: who has closed it, with which code and message.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing, and several tasks may wait.
    pub async fn closed(&self) -> Closed {
        self.shared().closed().await
    }

    /// Returns the reason of the end, or `None` while the session is open.
    pub fn close_reason(&self) -> Option<Closed> {
        self.shared().ended()
    }

    /// Asks the peer to end the session soon. It continues until one end closes it.
    pub fn drain(&self) {
        self.shared().drain();
    }

    /// Waits until the session should end soon: because the peer asks for it, or because either end has announced the
    /// end of the whole connection with GOAWAY, as a server does that [drains](courser_http3_tokio::Serve::drain).
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing, and several tasks may wait.
    pub async fn draining(&self) {
        self.shared().draining().await;
    }

    /// Returns the application protocol that the server has chosen among those of the client.
    pub fn protocol(&self) -> Option<&str> {
        self.shared().protocol.as_deref()
    }

    /// Returns the dialect of the connection.
    pub fn dialect(&self) -> Dialect {
        self.shared().agreement.dialect
    }

    /// Returns the number of the session: the ID of its CONNECT stream.
    pub fn id(&self) -> SessionId {
        self.shared().id
    }

    /// Returns the URI of the request.
    pub fn uri(&self) -> &Uri {
        &self.shared().uri
    }

    /// Returns the origin of the page that has opened the session, if its client has sent one. Browsers always do.
    pub fn origin(&self) -> Option<&HeaderValue> {
        self.shared().page.as_ref()
    }

    /// Returns the current address of the peer.
    pub fn remote_address(&self) -> SocketAddr {
        self.quic().remote_address()
    }

    /// Returns the statistics of the session.
    pub fn stats(&self) -> SessionStats {
        self.shared().stats()
    }

    /// Fills `output` with keying material of this session, which both ends derive from the same `label` and `context`, of
    /// at most 255 bytes each. Other sessions of the connection derive other material (draft-ietf-webtrans-http3-16 §4.8).
    ///
    /// # Errors
    /// Returns an error if label, context or output are too long, and when the connection is over.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportError> {
        let context = exporter_context(self.id(), label, context)?;
        let exported = self
            .quic()
            .export_keying_material(output, EXPORTER_LABEL, &context);
        exported.map_err(ExportError::Connection)
    }

    /// Ends the session without a reason, by a reset of its CONNECT stream, as when a gateway loses the other side. All
    /// its streams are reset. Has no effect if the session has ended.
    pub fn reset(&self, code: Code) {
        self.shared().reset(code);
    }

    /// Returns the QUIC connection, which may carry requests and other sessions too.
    pub fn quic(&self) -> &Connection {
        self.shared().quic()
    }
}
