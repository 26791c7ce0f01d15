//! Changes of the largest size of a datagram. RFC 9221 §5, RFC 8899.

use std::sync::Arc;
use std::task::Poll;

use courser_transport::ConnectionError;

use crate::api::connection::Connection;
use crate::api::handles::ConnectionRef;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

/// Waits for changes of [`Connection::max_datagram_size`]. See [`Connection::watch_datagram_size`].
///
/// A clone has seen what the original has seen. A watch keeps the connection open, as any handle does.
#[derive(Clone, Debug)]
pub struct DatagramSizeWatch {
    connection: Arc<ConnectionRef>,
    seen: Option<usize>,
}

impl Connection {
    /// Returns a watch of [`max_datagram_size`](Connection::max_datagram_size), which has seen the present size.
    ///
    /// For programs that plan with the size, such as a tunnel or an encoder of video. The size usually grows
    /// once or twice in the first round trips after the handshake, as the path MTU is searched for (RFC 8899),
    /// and changes again when the path does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let mut size = client.watch_datagram_size();
    /// while size.seen() < Some(1280) {
    ///     size.changed().await?;
    /// }
    /// println!("whole packets of 1280 bytes fit");
    /// assert!(client.max_datagram_size() >= Some(1280));
    /// # Ok(()) }
    /// ```
    pub fn watch_datagram_size(&self) -> DatagramSizeWatch {
        DatagramSizeWatch {
            connection: self.0.clone(),
            seen: self.max_datagram_size(),
        }
    }
}

impl DatagramSizeWatch {
    /// Returns the size that this watch has seen last, in bytes; `None` if the peer accepts no datagrams, or
    /// its limits were not known yet.
    pub fn seen(&self) -> Option<usize> {
        self.seen
    }

    /// Waits until the size differs from the one that was seen last, and returns it. Sizes between two calls
    /// are not reported, so that a slow task learns only the present one.
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has seen nothing.
    pub async fn changed(&mut self) -> Result<Option<usize>, ConnectionError> {
        let (handle, seen) = (self.connection.handle, self.seen);
        let check = move |locked: &mut Locked<'_>| match locked.open_connection(handle) {
            Ok(connection) => match connection.max_datagram_size() {
                size if size != seen => Poll::Ready(Ok(size)),
                _ => Poll::Pending,
            },
            Err(error) => Poll::Ready(Err(error)),
        };
        let size = self.connection.wait(Topic::DatagramSize, check).await?;
        self.seen = size;
        Ok(size)
    }
}
