//! Liveness tests with PING frames. RFC 9000 §19.2.

use std::task::Poll;
use std::time::Duration;

use courser_transport::ConnectionError;

use crate::api::connection::Connection;
use crate::shard::lock::Locked;
use crate::shard::wakers::Topic;

impl Connection {
    /// Sends a PING and returns the time until the peer acknowledged it.
    ///
    /// The time contains the delay that the peer takes before it acknowledges, by default up to
    /// 25 ms. Use [`rtt`](Connection::rtt) for an estimate without that delay. A PING that is lost
    /// is replaced by another, and the time counts from the one that was acknowledged. Calls that
    /// wait for the same packet share one PING, so any number of tasks may call this. After 500 PINGs in a
    /// short time, further ones are sent every 20 ms, because a peer may treat more as an attack.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # async fn check(connection: &courser::Connection) -> Result<(), courser::ConnectionError> {
    /// let time = connection.ping().await?;
    /// println!("the peer answered after {time:?}");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the connection ends before the answer. A connection to a peer that does not answer ends
    /// after [`TransportConfig::max_idle_timeout`](crate::TransportConfig::max_idle_timeout).
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready may have sent a PING.
    pub async fn ping(&self) -> Result<Duration, ConnectionError> {
        let handle = self.0.handle;
        let mut request = None;
        let check = move |locked: &mut Locked<'_>| {
            let connection = match locked.open_connection(handle) {
                Ok(connection) => connection,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match request {
                Some(request) => match connection.pings().answer(request) {
                    Some(round_trip) => Poll::Ready(Ok(round_trip)),
                    None => Poll::Pending,
                },
                None => {
                    request = Some(connection.pings().request());
                    locked.used(handle, 0);
                    Poll::Pending
                }
            }
        };
        self.0.wait(Topic::Ping, check).await
    }
}
