//! Detection of silent paths. RFC 9002 §6.2.

use std::sync::atomic::Ordering;
use std::task::Poll;

use courser_transport::ConnectionError;

use crate::api::connection::Connection;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

impl Connection {
    /// Returns true while the path is silent: three probe timeouts in a row (RFC 9002 §6.2) have brought
    /// no acknowledgement.
    ///
    /// Such a path may be dead, or interrupted for a moment. The connection continues to probe it until its
    /// idle timeout, or until [`TransportConfig::max_ptos`](crate::TransportConfig::max_ptos) ends
    /// it. A program with another path can use that meanwhile. Costs no lock.
    ///
    /// A connection with nothing in flight sends no probes and does not become silent: use
    /// [`ping`](Connection::ping) to test it.
    pub fn is_path_silent(&self) -> bool {
        self.0.silence.load(Ordering::Relaxed)
    }

    /// Waits until the path is silent. Returns at once if it is.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn ask(connection: &courser::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let (mut send, mut receive) = connection.open_bi().await?;
    /// send.write_all(b"a question").await?;
    /// send.finish()?;
    /// tokio::select! {
    ///     answer = receive.read_to_end(1000) => println!("{:?}", answer?),
    ///     silent = connection.path_silent() => {
    ///         silent?;
    ///         println!("no answer to three probes: ask elsewhere");
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the connection ends before.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn path_silent(&self) -> Result<(), ConnectionError> {
        self.wait_for_silence(true).await
    }

    /// Waits until the path answers again: until a packet is acknowledged. Returns at once if the path is
    /// not silent.
    ///
    /// # Errors
    /// Returns an error if the connection ends before.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn path_responsive(&self) -> Result<(), ConnectionError> {
        self.wait_for_silence(false).await
    }

    /// Waits until the path is silent, or until it is not.
    async fn wait_for_silence(&self, is_silent: bool) -> Result<(), ConnectionError> {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| match locked.poll_open(handle) {
            Poll::Pending if self.is_path_silent() == is_silent => Poll::Ready(Ok(())),
            open => open,
        };
        self.0.wait(Topic::Silence, check).await
    }
}
