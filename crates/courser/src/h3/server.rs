//! Requests of a connection, one by one.

use std::sync::Arc;

use courser_http3::{self as http3, Code};

use super::datagrams::Datagrams;
use super::error::{Error, var_int};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::shared::{Guard, Shared};
use super::unresolved::Unresolved;
use super::{driver, priority};
use crate::Connection;

/// The server's end of a connection.
#[derive(Clone, Debug)]
pub struct ServerConnection(Arc<Guard>);

impl ServerConnection {
    /// Speaks HTTP/3 on a connection that was accepted.
    pub fn new(connection: Connection, config: http3::Config) -> Self {
        let shared = Shared::new(connection, config);
        driver::start(&shared);
        Self(Arc::new(Guard(shared)))
    }

    /// The next request, of which nothing has been read. Requests that a GOAWAY of ours refuses
    /// are refused in here.
    ///
    /// # Errors
    /// When the connection is over; [`Error::is_clean_close`] tells whether anything is wrong.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept(&self) -> Result<Unresolved, Error> {
        loop {
            let accepted = self
                .0
                .quic
                .accept_bi_at(level_of_new, || self.0.write_answers());
            let (send, mut receive) = accepted.await?;
            let stream = send.id();
            // Before its datagrams are told from early ones.
            let datagrams = self.datagrams(stream.value());
            let (is_served, update) = self.0.drive(|state| {
                let update = state.http.on_request_opened(stream.value());
                Ok((state.http.is_served(stream.value()), update))
            })?;
            let mut outgoing = Outgoing::new(self.0.clone(), send);
            if !is_served {
                outgoing.reset(Code::REQUEST_REJECTED);
                let _ = receive.stop(var_int(Code::REQUEST_REJECTED));
                self.0.datagrams.on_receiving_over(stream.value());
                continue;
            }
            if let Some(update) = update {
                let level = priority::level(update, stream.index());
                let _ = outgoing.send.set_priority(level);
            }
            return Ok(Unresolved {
                datagrams,
                has_priority: update.is_some(),
                head_timeout: None,
                outgoing,
                incoming: Box::new(Incoming::request(self.0.clone(), receive)),
            });
        }
    }

    fn datagrams(&self, stream: u64) -> Option<Datagrams> {
        let registry = &self.0.datagrams;
        registry.is_enabled().then(|| {
            registry.open(self.0.now(), stream);
            Datagrams::new(self.0.clone(), stream)
        })
    }

    /// Tells the client that the server will go away, and still serves what it sends: the first
    /// step (RFC 9114 §5.2), a round trip or more before [`go_away`](Self::go_away).
    pub fn announce_going_away(&self) {
        let _ = self.0.drive(|state| {
            state.http.announce_going_away();
            Ok(())
        });
    }

    /// Tells the client that requests from the next one on are not served: the second step.
    pub fn go_away(&self) {
        let _ = self.0.drive(|state| {
            state.http.go_away_after_last();
            Ok(())
        });
    }

    /// Closes the connection at once; requests that are not over fail.
    pub fn close(&self) {
        self.0.close();
    }

    /// The QUIC connection, for its address and statistics.
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }
}

/// Where a response stands until its request or the client says otherwise.
fn level_of_new(index: u64) -> i32 {
    priority::level(http3::Priority::default(), index)
}
