//! The order in which streams are sent, and the rate at which they leave.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use courser_base::Rate;
use courser_transport::{self as transport, ClosedStream};

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;
use crate::api::send_stream::SendStream;

/// A group of streams of one connection, which has a share of its own beside other groups.
///
/// Created by [`Connection::send_group`]. It is a name, without any state: dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct SendGroup {
    connection: Weak<ConnectionRef>,
    number: u32,
}

impl SendGroup {
    /// Returns true if the group belongs to this connection.
    pub fn is_of(&self, connection: &Connection) -> bool {
        self.connection.as_ptr() == Arc::as_ptr(&connection.0)
    }
}

/// The reason why [`SendStream::set_group`] failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetGroupError {
    /// The group belongs to another connection than the stream.
    #[error(
        "the group belongs to another connection: use Connection::send_group of the stream's connection"
    )]
    OtherConnection,
    /// The stream is over.
    #[error(transparent)]
    ClosedStream(#[from] ClosedStream),
}

/// The rate at which data leaves, for [`Connection::send_rate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SendRate {
    /// The rate at which the path delivers what is sent.
    pub rate: Rate,
    /// True if there was too little to send to show what the path can deliver: it may be more than `rate`.
    pub is_app_limited: bool,
}

impl Connection {
    /// Creates a group of streams: see [`SendStream::set_group`].
    pub fn send_group(&self) -> SendGroup {
        // The first number is 1: 0 is for streams without a group.
        let before = self.0.groups.fetch_add(1, Ordering::Relaxed);
        SendGroup {
            connection: Arc::downgrade(&self.0),
            number: before.wrapping_add(1).max(1),
        }
    }

    /// Returns an estimate of the rate at which the path delivers what is sent, in payload of UDP. `None` until packets
    /// were acknowledged.
    ///
    /// It is measured while data is sent, and costs nothing beyond the call. While the application sends as much as the
    /// path carries, it is the rate over the last round trip. Otherwise it is the highest rate of the last 10 to 20
    /// round trips, with [`is_app_limited`](SendRate::is_app_limited).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # client.open_uni().await?.write_all(b"something").await?;
    /// # server.accept_uni().await?.read_to_end(100).await?;
    /// let mut bitrate = 4_000_000;
    /// if let Some(estimate) = client.send_rate() {
    ///     let available = 8 * estimate.rate.as_bytes_per_second();
    ///     if available < bitrate && !estimate.is_app_limited {
    ///         bitrate = available;
    ///     }
    /// }
    /// # assert!(bitrate > 0);
    /// # Ok(()) }
    /// ```
    pub fn send_rate(&self) -> Option<SendRate> {
        let path = self.read(transport::Connection::path_stats)?;
        let is_app_limited = path.is_delivery_rate_app_limited;
        let rate = match is_app_limited {
            true => path.bandwidth?,
            false => path.delivery_rate?,
        };
        Some(SendRate {
            rate,
            is_app_limited,
        })
    }
}

impl SendStream {
    /// Sets the order, 0 by default. Of the streams of one group that have data to send, those with the highest order
    /// are sent, and take turns if there are several; streams with lower orders wait.
    ///
    /// The order can change at any time, also while data waits. Lost data is sent again before new data, in the same
    /// order. The [priority](SendStream::set_priority) is compared first, and in it the groups share:
    /// see [`set_group`](SendStream::set_group).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// // The newest picture first.
    /// for number in 0..3_i64 {
    ///     let mut picture = client.open_uni().await?;
    ///     picture.set_order(number)?;
    ///     picture.write_all(b"...").await?;
    ///     picture.finish()?;
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream is over.
    pub fn set_order(&self, order: i64) -> Result<(), ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        locked
            .open_streams(handle, stream)?
            .set_order(stream.id, order)
    }

    /// Returns the order.
    ///
    /// # Errors
    /// Returns [`ClosedStream`] if the stream is over.
    pub fn order(&self) -> Result<i64, ClosedStream> {
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        locked.open_streams(handle, stream)?.order(stream.id)
    }

    /// Puts the stream into a group, or with `None` among the streams without one, which count as a group.
    ///
    /// The groups that have data to send take turns of 16 KiB, so that each gets the same number of bytes, whatever the
    /// number of its streams and their [orders](SendStream::set_order). Only streams of equal
    /// [priority](SendStream::set_priority) share: a stream with a higher one is sent before all groups.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let (audio, video) = (client.send_group(), client.send_group());
    /// let stream = client.open_uni().await?;
    /// stream.set_group(Some(&audio))?;
    /// for _ in 0..10 {
    ///     let stream = client.open_uni().await?;
    ///     stream.set_group(Some(&video))?; // all ten share what is not audio
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`SetGroupError`] if the group is of another connection or the stream is over.
    pub fn set_group(&self, group: Option<&SendGroup>) -> Result<(), SetGroupError> {
        let is_other =
            |group: &SendGroup| group.connection.as_ptr() != Arc::as_ptr(&self.connection);
        if group.is_some_and(is_other) {
            return Err(SetGroupError::OtherConnection);
        }
        let number = group.map_or(0, |group| group.number);
        let (handle, stream) = (self.connection.handle, self.half.stream);
        let mut locked = self.connection.lock();
        let streams = locked.open_streams(handle, stream)?;
        Ok(streams.set_group(stream.id, number)?)
    }
}
