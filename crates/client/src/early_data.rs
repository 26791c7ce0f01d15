//! Early data (0-RTT): the remembered settings of servers, and the requests that may be sent before the
//! handshake completes (RFC 8470).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_http3_tokio as h3;
use courser_quic::{Connection, EarlyData};
use http::Method;

use super::error::{Error, ErrorKind};
use super::race::within_limits;

/// The remembered settings of servers, which early data depends on (RFC 9114 §7.2.4.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered(Arc<Mutex<HashMap<Server, h3::Settings>>>);

/// The name and port of a server, by which its tickets are stored.
pub(super) type Server = (String, u16);

impl Remembered {
    /// Returns the remembered settings of a server.
    pub(super) fn get(&self, name: &str, port: u16) -> Option<h3::Settings> {
        self.0.lock().get(&(name.to_owned(), port)).copied()
    }

    /// Remembers the settings of a server when they arrive. If the connection ends before, removes the settings
    /// with which it was resumed, unless a later connection has replaced them.
    pub(super) fn watch(
        &self,
        client: h3::Client,
        name: &str,
        port: u16,
        resumed: Option<h3::Settings>,
    ) {
        let (remembered, server) = (self.clone(), (name.to_owned(), port));
        tokio::spawn(async move {
            match client.settings().await {
                Some(settings) => remembered.put(server, settings),
                None => remembered.remove_if(&server, resumed),
            }
        });
    }

    /// Removes the settings of a server, so that the next connection to it sends no early data.
    pub(super) fn remove(&self, name: &str, port: u16) {
        self.0.lock().remove(&(name.to_owned(), port));
    }

    /// Removes the settings of a server if they are these.
    fn remove_if(&self, server: &Server, settings: Option<h3::Settings>) {
        let mut all = self.0.lock();
        if all.get(server).copied() == settings {
            all.remove(server);
        }
    }

    /// Stores the settings of a server.
    pub(super) fn put(&self, server: Server, settings: h3::Settings) {
        let mut all = self.0.lock();
        if all.len() >= MAX_SERVERS && !all.contains_key(&server) {
            // Their next connections send no early data.
            all.clear();
        }
        all.insert(server, settings);
    }
}

/// Waits for the handshake of a connection that sends early data, unless the request may be replayed (RFC 8470
/// §4).
///
/// # Errors
/// Returns an error if the server rejects the early data, which ends the connection.
pub(super) async fn wait_if_unsafe(quic: &Connection, method: &Method) -> Result<(), Error> {
    match Departure::of(quic.early_data(), quic.is_authenticated(), method) {
        Departure::Never => return Err(Error::of_h3(h3::Error::EarlyDataRejected)),
        Departure::Now => return Ok(()),
        Departure::AfterHandshake => {}
    }
    match quic.authenticated().await {
        Ok(EarlyData::Rejected) => Err(Error::of_h3(h3::Error::EarlyDataRejected)),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::of_h3(error.into())),
    }
}

/// The earliest time at which a request may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Departure {
    Now,
    AfterHandshake,
    /// The server rejected early data, which ended the streams of the connection.
    Never,
}

impl Departure {
    /// The server accepts early data before its `Finished` message, and packets sent in between can still be
    /// replayed. Only the completed handshake prevents that (RFC 8446 §8).
    fn of(state: EarlyData, is_authenticated: bool, method: &Method) -> Self {
        match state {
            EarlyData::Rejected => Self::Never,
            _ if is_authenticated || method.is_safe() => Self::Now,
            _ => Self::AfterHandshake,
        }
    }
}

/// Returns true if a connection sends requests before its handshake completes, and the server has not rejected
/// early data.
pub(super) fn is_unfinished(quic: &Connection) -> bool {
    is_early(quic.early_data(), quic.is_authenticated())
}

fn is_early(state: EarlyData, is_authenticated: bool) -> bool {
    !is_authenticated && matches!(state, EarlyData::Offered | EarlyData::Accepted)
}

/// Waits for the result of an early request, which was sent without a race because QUIC worked with the server
/// before.
///
/// # Errors
/// Returns [`Silence`] if the server completes no handshake within several attempt delays. The request should be
/// repeated with a race. A request with an unsafe method was not sent in that case.
pub(super) async fn unless_silent<T>(
    quic: &Connection,
    delay: Duration,
    sent: impl Future<Output = T>,
) -> Result<T, Silence> {
    let limit = within_limits(delay) * DELAYS;
    let silence = async {
        let answer = tokio::time::timeout(limit, quic.authenticated()).await;
        if answer.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        sent = sent => Ok(sent),
        () = silence => Err(Silence(limit)),
    }
}

/// A server did not complete the handshake within this time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence(Duration);

impl From<Silence> for Error {
    fn from(Silence(limit): Silence) -> Self {
        let text = format!("the server did not answer early data within {limit:?}");
        Self::new(ErrorKind::ConnectQuic, text)
    }
}

/// Number of attempt delays before an early request is repeated. With the default delay this is one second, the
/// first probe timeout (RFC 9002 §6.2.2). A shorter time would repeat requests over slow paths.
const DELAYS: u32 = 4;

/// Largest number of servers whose settings are remembered (limit K154), equal to the number whose tickets
/// rustls stores.
const MAX_SERVERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_requests_wait_for_the_end_of_the_handshake() {
        use Departure::{AfterHandshake, Never, Now};
        for (state, is_authenticated, post, get, leaves_early) in [
            (EarlyData::Offered, false, AfterHandshake, Now, true),
            // Between `EncryptedExtensions` and `Finished`.
            (EarlyData::Accepted, false, AfterHandshake, Now, true),
            (EarlyData::Accepted, true, Now, Now, false),
            (EarlyData::Rejected, false, Never, Never, false),
            (EarlyData::Rejected, true, Never, Never, false),
            (EarlyData::None, true, Now, Now, false),
        ] {
            let of = |method| Departure::of(state, is_authenticated, &method);
            assert_eq!(of(Method::POST), post, "{state:?} {is_authenticated}");
            assert_eq!(of(Method::GET), get, "{state:?} {is_authenticated}");
            let early = is_early(state, is_authenticated);
            assert_eq!(early, leaves_early, "{state:?} {is_authenticated}");
        }
    }

    #[test]
    fn settings_of_a_bounded_number_of_servers_are_remembered() {
        let remembered = Remembered::default();
        let most = u16::try_from(MAX_SERVERS).expect("small");
        let put = |port| remembered.put(("localhost".to_owned(), port), h3::Settings::default());
        (1..=most).for_each(put);
        assert!((1..=most).all(|port| remembered.get("localhost", port).is_some()));
        put(1);
        assert_eq!(remembered.0.lock().len(), MAX_SERVERS, "a known one");
        put(most + 1);
        assert_eq!(remembered.0.lock().len(), 1, "one above limit K154");
        let remembered = Remembered::default();
        for port in 0..1000 {
            remembered.put(("localhost".to_owned(), port), h3::Settings::default());
            assert!(remembered.get("localhost", port).is_some());
            assert!(remembered.0.lock().len() <= MAX_SERVERS);
        }
        assert_eq!(remembered.get("localhost", 1000), None);
        assert_eq!(remembered.get("example.test", 999), None);
    }
}
