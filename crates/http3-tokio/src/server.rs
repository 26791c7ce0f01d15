//! The server end of a connection.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use courser_http3 as http3;
use courser_quic::Connection;
use courser_quic::hooks::{ConnectionHooks, RecvStreamHooks as _, SendStreamHooks as _};

use super::arrivals::Arrival;
use super::datagrams::Datagrams;
use super::error::Error;
use super::extension::Extension;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::shared::{Guard, SharedConnection};
use super::unresolved::Unresolved;
use super::waiting::WaitingResponses;
use super::{driver, priority};

/// The server end of a connection.
#[derive(Clone, Debug)]
pub struct ServerConnection(Arc<Guard>);

impl ServerConnection {
    /// Starts HTTP/3 on an accepted connection.
    pub fn new(connection: Connection, config: http3::Config) -> Self {
        Self::begin(connection, config, driver::SETTINGS_TIMEOUT)
    }

    /// Starts HTTP/3 with a time limit for the client's SETTINGS.
    pub(super) fn begin(
        connection: Connection,
        config: http3::Config,
        settings_timeout: Duration,
    ) -> Self {
        let shared = SharedConnection::new(connection, config);
        driver::start(&shared, settings_timeout);
        Self(Arc::new(Guard(shared)))
    }

    /// Limits the time for the first bytes of a stream that may be a request.
    pub(super) fn set_longest_first(&self, limit: Duration) {
        self.0.arrivals.set_longest(limit);
    }

    /// Returns true if no stream waits to be read or to be accepted.
    pub(super) fn has_no_arrivals(&self) -> bool {
        self.0.arrivals.is_empty()
    }

    /// Waits for the next request and returns it unread. Rejects requests that a GOAWAY of this end excludes,
    /// and those of a client that has cancelled too many others before their responses.
    ///
    /// While many responses wait for a client that takes nothing of them, further requests wait as well, so that
    /// the client holds little memory. Where extensions allow the client more streams than QUIC does by default, as
    /// WebTransport does, no more requests run at the same time than without them, and further ones wait (limit K591).
    /// Streams of extensions are passed to these meanwhile.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (near, far) = pair().await?;
    /// use courser::Side;
    ///
    /// # let connection = far;
    /// # tokio::spawn(async move {
    /// #     let client = h3::Client::new(near);
    /// #     let request = http::Request::get("https://localhost/").body(h3::Empty)?;
    /// #     client.send(request).await?;
    /// #     client.close();
    /// #     Result::Ok(())
    /// # });
    /// let server = h3::ServerConnection::new(connection, h3::Config::new(Side::Server));
    /// while let Ok(unresolved) = server.accept().await {
    ///     tokio::spawn(async move {
    ///         let (request, respond) = unresolved.resolve().await?;
    ///         println!("{} {}", request.method(), request.uri());
    ///         respond.send(http::Response::new(h3::Empty)).await
    ///     });
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is closed; see [`Error::is_clean_close`].
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn accept(&self) -> Result<Unresolved, Error> {
        if self.0.extensions().has_any_bidirectional() {
            return Ok(self.unresolved(self.0.0.next_request().await?));
        }
        loop {
            let accepting = self
                .0
                .quic
                .accept_bi_at(priority::level_of_new, || self.0.write_answers());
            let mut accepting = pin!(accepting);
            // Asked in each poll, because responses may begin to wait while no stream arrives.
            let accepted = std::future::poll_fn(|cx| {
                if self.0.waiting.poll_accept(cx).is_pending() {
                    self.0.write_answers();
                    return Poll::Pending;
                }
                accepting.as_mut().poll(cx)
            });
            let (send, receive) = accepted.await?;
            let stream = send.id();
            // Registered first, because its datagrams count as early ones until then.
            self.0.datagrams.open(self.0.now(), stream.value());
            let (is_served, update) = self.0.drive(|state| {
                let update = state.http.on_request_opened(stream.value());
                let is_served = state.http.is_served(stream.value())
                    && state.http.admit_request(|| self.0.now())?;
                Ok((is_served, update))
            })?;
            let arrival = Arrival {
                send,
                receive,
                first: Bytes::new(),
                update,
            };
            if is_served {
                return Ok(self.unresolved(arrival));
            }
            self.0.reject(arrival);
        }
    }

    /// Builds what receives and answers a request.
    fn unresolved(&self, arrival: Arrival) -> Unresolved {
        let Arrival {
            send,
            receive,
            first,
            update,
        } = arrival;
        let stream = send.id();
        let registry = &self.0.datagrams;
        let datagrams = registry
            .is_enabled()
            .then(|| Datagrams::new(self.0.clone(), stream.value()));
        let outgoing = Outgoing::new(self.0.clone(), send);
        if let Some(update) = update {
            let level = priority::level(update, stream.index());
            outgoing.send.set_level(level);
        }
        let has_ended = receive.has_ended();
        let mut incoming = Incoming::request(self.0.clone(), receive);
        if !first.is_empty() || has_ended {
            incoming.begin_with(first, has_ended);
        }
        Unresolved {
            datagrams,
            has_priority: update.is_some(),
            head_timeout: None,
            outgoing,
            incoming: Box::new(incoming),
        }
    }

    /// Returns the responses that wait for the client.
    pub(super) fn waiting_responses(&self) -> Arc<WaitingResponses> {
        self.0.waiting.clone()
    }

    /// Returns the extension whose streams and frames [`Config::extensions`](super::Config::extensions) claims.
    pub fn extension(&self) -> Extension {
        Extension::new(self.0.0.clone())
    }

    /// Announces to the client that the server is shutting down, and continues to serve its requests. This is
    /// the first step (RFC 9114 §5.2), at least a round trip before [`go_away`](Self::go_away).
    pub fn announce_going_away(&self) {
        let _ = self.0.drive(|state| {
            state.http.announce_going_away();
            state.wake_going_away();
            Ok(())
        });
    }

    /// Rejects all requests after those received so far. This is the second step.
    pub fn go_away(&self) {
        let _ = self.0.drive(|state| {
            state.http.go_away_after_last();
            state.wake_going_away();
            Ok(())
        });
    }

    /// Closes the connection at once. Requests in progress fail.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns the QUIC connection for access to its addresses and statistics.
    pub fn quic(&self) -> &Connection {
        &self.0.quic
    }
}
