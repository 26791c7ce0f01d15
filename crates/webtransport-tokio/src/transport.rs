//! One trait for sessions of WebTransport and connections of QUIC.

mod quic;
mod session;

use std::fmt::Debug;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_http3_tokio::DatagramError;
use courser_quic::{ConnectionStats, SendRate, StreamId};
use courser_webtransport::{ApplicationCode, Closed};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::{ReadError, SessionEnded, WriteError};

/// What a protocol on streams and datagrams needs, such as media over QUIC: [`Session`](crate::Session) implements it for
/// browsers, and `Connection` for peers that speak the protocol on QUIC directly. A program that is generic over it is
/// written once.
///
/// Codes have 32 bits as in WebTransport. On a connection they are the codes of QUIC, and larger ones of the peer read as
/// `None`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
/// use courser::webtransport::{self, Config, ReceiveHalf, SendHalf, SessionRequest, Transport};
///
/// /// Publishes pictures, the newest first.
/// async fn publish<T: Transport>(transport: T) -> Result {
///     for (number, picture) in (0..3).zip(["one", "two", "three"]) {
///         let mut stream = transport.open_uni().await?;
///         stream.set_order(number)?;
///         stream.write_chunk(picture.into()).await?;
///         stream.finish()?;
///     }
///     transport.closed().await;
///     Ok(())
/// }
///
/// async fn watch<T: Transport>(transport: T) -> Result {
///     let mut seen = 0;
///     while seen < 3 {
///         let mut stream = transport.accept_uni().await?;
///         seen += usize::from(stream.read_chunk(1000).await?.is_some());
///     }
///     transport.close(0, "seen all");
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// // Over QUIC.
/// # let (near, far) = pair().await?;
/// tokio::spawn(publish(far));
/// watch(near).await?;
///
/// // Over WebTransport.
/// # let (near, far) = pair().await?;
/// let service = tower::service_fn(|mut request| async move {
///     let accepted = webtransport::upgrade(&mut request).accept(publish);
///     Result::Ok(accepted.await as http::Response<h3::Empty>)
/// });
/// let mut settings = h3::Config::new(Side::Server);
/// webtransport::enable(&mut settings, Side::Server, Config::new())?;
/// tokio::spawn(h3::serve(far, service).config(settings).into_future());
/// let mut settings = h3::Config::new(Side::Client);
/// webtransport::enable(&mut settings, Side::Client, Config::new())?;
/// let client = h3::Client::with_config(near, settings);
/// let request = SessionRequest::new("https://localhost/".parse()?);
/// watch(webtransport::connect(&client, request).await?).await?;
/// # Ok(()) }
/// ```
pub trait Transport: Clone + Debug + Send + Sync + 'static {
    /// The sending half of a stream.
    type SendStream: SendHalf<Group = Self::Group>;
    /// The receiving half of a stream.
    type RecvStream: ReceiveHalf;
    /// A group of streams, which has a share of its own.
    type Group: Clone + Debug + Send + Sync + 'static;

    /// Opens a bidirectional stream. Waits while the peer allows none.
    ///
    /// # Errors
    /// Returns the reason of the end.
    fn open_bi(
        &self,
    ) -> impl Future<Output = Result<(Self::SendStream, Self::RecvStream), SessionEnded>> + Send;

    /// Opens a unidirectional stream. Waits while the peer allows none.
    ///
    /// # Errors
    /// Returns the reason of the end.
    fn open_uni(&self) -> impl Future<Output = Result<Self::SendStream, SessionEnded>> + Send;

    /// Waits for the next bidirectional stream of the peer.
    ///
    /// # Errors
    /// Returns the reason of the end.
    fn accept_bi(
        &self,
    ) -> impl Future<Output = Result<(Self::SendStream, Self::RecvStream), SessionEnded>> + Send;

    /// Waits for the next unidirectional stream of the peer.
    ///
    /// # Errors
    /// Returns the reason of the end.
    fn accept_uni(&self) -> impl Future<Output = Result<Self::RecvStream, SessionEnded>> + Send;

    /// Sends a datagram once, without a guarantee that it arrives. If too many wait, the oldest is dropped and counted.
    ///
    /// # Errors
    /// Returns an error if the datagram cannot be sent, with the largest size if it is too large.
    fn send_datagram(&self, payload: Bytes) -> Result<(), DatagramError>;

    /// Waits for the next datagram of the peer.
    ///
    /// # Errors
    /// Returns the reason of the end.
    fn receive_datagram(&self) -> impl Future<Output = Result<Bytes, SessionEnded>> + Send;

    /// Returns the size in bytes of the largest datagram that can be sent now, or `None` if none can.
    fn max_datagram_size(&self) -> Option<usize>;

    /// Creates a group of streams, for [`SendHalf::set_group`].
    fn send_group(&self) -> Self::Group;

    /// Returns an estimate of the rate at which the path delivers, that of the whole connection.
    fn send_rate(&self) -> Option<SendRate>;

    /// Returns the counters of the whole connection.
    fn stats(&self) -> ConnectionStats;

    /// Returns the application protocol on which both ends have agreed: of the session, or of TLS (ALPN).
    fn protocol(&self) -> Option<String>;

    /// Ends it with a code and a message. What the peer has not received may be lost.
    fn close(&self, code: u32, message: &str);

    /// Waits for the end, and returns its reason.
    fn closed(&self) -> impl Future<Output = Closed> + Send;

    /// Returns the reason of the end, or `None` while there is none.
    fn close_reason(&self) -> Option<Closed>;
}

/// The sending half of a stream of a [`Transport`].
///
/// The methods have the meaning and the cancel safety of those with the same names of
/// [`SendStream`](crate::SendStream).
pub trait SendHalf: AsyncWrite + Debug + Unpin + Send + Sync + 'static {
    /// A group of streams.
    type Group;

    /// Returns the stream ID.
    fn id(&self) -> StreamId;

    /// Writes some bytes and returns their number, or arranges to be woken when more can be written.
    ///
    /// # Errors
    /// Returns an error if the stream takes no more bytes.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, WriteError>>;

    /// Writes all of a chunk without copying it.
    ///
    /// # Errors
    /// Returns an error if the stream takes no more bytes.
    fn write_chunk(&mut self, chunk: Bytes) -> impl Future<Output = Result<(), WriteError>> + Send;

    /// Ends the stream after what was written.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn finish(&mut self) -> Result<(), WriteError>;

    /// Abandons the stream with a code.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn reset(&mut self, code: u32) -> Result<(), WriteError>;

    /// Abandons the stream with a code, but still delivers its first `reliable_size` bytes if the peer accepts
    /// RESET_STREAM_AT.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn reset_at(&mut self, code: u32, reliable_size: u64) -> Result<(), WriteError>;

    /// Resets the stream with a code after this time, unless everything was acknowledged.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn set_deadline(&mut self, after: Option<Duration>, code: u32) -> Result<(), WriteError>;

    /// Sets the order: higher ones are first in their group.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn set_order(&self, order: i64) -> Result<(), WriteError>;

    /// Sets the group: those with data to send get the same number of bytes each.
    ///
    /// # Errors
    /// Returns an error if the stream is over, or the group belongs to another transport.
    fn set_group(&self, group: Option<&Self::Group>) -> Result<(), WriteError>;

    /// Sets the priority: higher ones precede all groups and orders of lower ones.
    ///
    /// # Errors
    /// Returns an error if the stream is over.
    fn set_priority(&self, priority: i32) -> Result<(), WriteError>;

    /// Waits until all that was written is acknowledged.
    ///
    /// # Errors
    /// Returns an error if that will not happen.
    fn acknowledged(&self) -> impl Future<Output = Result<(), WriteError>> + Send + 'static;

    /// Waits until the peer stops reading, and returns its code, or `None` if it has received everything.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<ApplicationCode>, WriteError>> + Send + 'static;
}

/// The receiving half of a stream of a [`Transport`].
///
/// The methods have the meaning and the cancel safety of those with the same names of
/// [`RecvStream`](crate::RecvStream).
pub trait ReceiveHalf: AsyncRead + Debug + Unpin + Send + Sync + 'static {
    /// Returns the stream ID.
    fn id(&self) -> StreamId;

    /// Returns up to `most` of the next bytes without copying them, `None` at the end of the stream, or arranges to be
    /// woken when there are some.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream, or it cannot be read any more.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>>;

    /// Returns up to `most` of the next bytes without copying them, or `None` at the end of the stream.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream, or it cannot be read any more.
    fn read_chunk(
        &mut self,
        most: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, ReadError>> + Send {
        std::future::poll_fn(move |cx| self.poll_chunk(cx, most))
    }

    /// Asks the peer to stop sending, with a code.
    ///
    /// # Errors
    /// Returns an error if the stream was read to its end or stopped before.
    fn stop(&mut self, code: u32) -> Result<(), ReadError>;

    /// Returns the number of bytes in the stream, once its end or reset is known.
    fn final_size(&self) -> Option<u64>;
}
