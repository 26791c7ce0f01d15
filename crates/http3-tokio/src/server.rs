//! The server end of a connection.

use std::sync::Arc;
use std::time::Duration;

use courser_http3::{self as http3, Code};
use courser_quic::Connection;
use courser_quic::hooks::{ConnectionHooks, Level, SendStreamHooks as _};

use super::datagrams::Datagrams;
use super::error::Error;
use super::extension::Extension;
use super::failure::var_int;
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

    /// Waits for the next request and returns it unread. Rejects requests that a GOAWAY of this end excludes,
    /// and those of a client that has cancelled too many others before their responses.
    ///
    /// While many responses wait for a client that takes nothing of them, further requests wait as well, so that
    /// the client holds little memory.
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
        std::future::poll_fn(|cx| {
            let may_accept = self.0.waiting.poll_accept(cx);
            if may_accept.is_pending() {
                self.0.write_answers();
            }
            may_accept
        })
        .await;
        loop {
            let accepted = self
                .0
                .quic
                .accept_bi_at(level_of_new, || self.0.write_answers());
            let (send, mut receive) = accepted.await?;
            let stream = send.id();
            // Registered first, because its datagrams count as early ones until then.
            let datagrams = self.datagrams(stream.value());
            let (is_served, update) = self.0.drive(|state| {
                let update = state.http.on_request_opened(stream.value());
                let is_served = state.http.is_served(stream.value())
                    && state.http.admit_request(|| self.0.now())?;
                Ok((is_served, update))
            })?;
            let mut outgoing = Outgoing::new(self.0.clone(), send);
            // Streams of extensions are not requests (RFC 9114 §5.2), which only their first bytes show.
            let is_excluded = !is_served && self.0.extensions().has_any_bidirectional();
            if !is_served && !is_excluded {
                outgoing.reset(Code::REQUEST_REJECTED);
                let _ = receive.stop(var_int(Code::REQUEST_REJECTED));
                self.0.datagrams.on_receiving_over(stream.value());
                continue;
            }
            if let Some(update) = update {
                let level = priority::level(update, stream.index());
                outgoing.send.set_level(level);
            }
            return Ok(Unresolved {
                datagrams,
                has_priority: update.is_some(),
                head_timeout: None,
                is_excluded,
                outgoing,
                incoming: Box::new(Incoming::request(self.0.clone(), receive)),
            });
        }
    }

    /// Returns the responses that wait for the client.
    pub(super) fn waiting_responses(&self) -> Arc<WaitingResponses> {
        self.0.waiting.clone()
    }

    fn datagrams(&self, stream: u64) -> Option<Datagrams> {
        let registry = &self.0.datagrams;
        registry.is_enabled().then(|| {
            registry.open(self.0.now(), stream);
            Datagrams::new(self.0.clone(), stream)
        })
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

/// Returns the level of a response until its request or the client changes it.
fn level_of_new(index: u64) -> Level {
    priority::level(http3::Priority::default(), index)
}
