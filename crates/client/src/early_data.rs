//! Requests in early data (0-RTT): the settings that servers have sent, and the requests that may leave
//! before the handshake is complete. RFC 8470.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_http3_tokio as h3;
use courser_quic::{Connection, EarlyData};
use http::Method;

use super::error::{Error, ErrorKind};
use super::race::within_limits;

/// The settings that servers have sent, which early data relies on (RFC 9114 §7.2.4.2).
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered(Arc<Mutex<HashMap<Server, h3::Settings>>>);

/// A server, as its tickets are stored: by name and port.
pub(super) type Server = (String, u16);

impl Remembered {
    /// Returns the settings of a server.
    pub(super) fn get(&self, name: &str, port: u16) -> Option<h3::Settings> {
        self.0.lock().get(&(name.to_owned(), port)).copied()
    }

    /// Remembers the settings of a server when they arrive.
    pub(super) fn watch(&self, client: h3::Client, name: &str, port: u16) {
        let (remembered, server) = (self.clone(), (name.to_owned(), port));
        tokio::spawn(async move {
            if let Some(settings) = client.settings().await {
                remembered.put(server, settings);
            }
        });
    }

    /// Forgets a server that has refused early data, so that the next connection to it has none.
    pub(super) fn forget(&self, name: &str, port: u16) {
        self.0.lock().remove(&(name.to_owned(), port));
    }

    /// Remembers the settings of a server.
    pub(super) fn put(&self, server: Server, settings: h3::Settings) {
        let mut all = self.0.lock();
        if all.len() >= MOST_SERVERS && !all.contains_key(&server) {
            // Their next connections are not early.
            all.clear();
        }
        all.insert(server, settings);
    }
}

/// Waits for the handshake of a connection that was used before its end, unless the request may be
/// replayed (RFC 8470 §4).
///
/// # Errors
/// Returns an error if the server refuses the early data: the connection is over.
pub(super) async fn wait_if_unsafe(quic: &Connection, method: &Method) -> Result<(), Error> {
    if quic.early_data() == EarlyData::Rejected {
        return Err(Error::of_h3(h3::Error::EarlyDataRejected));
    }
    if method.is_safe() || quic.early_data() != EarlyData::Offered {
        return Ok(());
    }
    match quic.authenticated().await {
        Ok(EarlyData::Rejected) => Err(Error::of_h3(h3::Error::EarlyDataRejected)),
        Ok(_) => Ok(()),
        Err(error) => Err(Error::of_h3(error.into())),
    }
}

/// Returns true if the server has not answered a connection that was used before its handshake is
/// complete.
pub(super) fn is_unanswered(quic: &Connection) -> bool {
    quic.early_data() == EarlyData::Offered
}

/// Waits for the result of an early request that had no race against TCP, because QUIC worked with the
/// server before.
///
/// # Errors
/// Returns the error of the request, and another one if the server answers nothing for several
/// delays between the attempts of a race. The request should be repeated with a race.
pub(super) async fn unless_silent<T>(
    quic: &Connection,
    delay: Duration,
    sent: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let patience = within_limits(delay) * DELAYS;
    let silence = async {
        let answer = tokio::time::timeout(patience, quic.authenticated()).await;
        if answer.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        sent = sent => sent,
        () = silence => {
            let text = format!("the server has not answered early data within {patience:?}");
            Err(Error::new(ErrorKind::ConnectQuic, text))
        }
    }
}

/// Attempt delays before an early request is repeated. With the default delay this is one second, as
/// long as the first probe timeout (RFC 9002 §6.2.2): a shorter time would repeat requests over slow paths.
const DELAYS: u32 = 4;

/// Servers whose settings are remembered (limit K154): as many as rustls stores tickets of.
const MOST_SERVERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_bounded_number_of_servers_are_remembered() {
        let remembered = Remembered::default();
        let most = u16::try_from(MOST_SERVERS).expect("small");
        let put = |port| remembered.put(("localhost".to_owned(), port), h3::Settings::default());
        (1..=most).for_each(put);
        assert!((1..=most).all(|port| remembered.get("localhost", port).is_some()));
        put(1);
        assert_eq!(remembered.0.lock().len(), MOST_SERVERS, "a known one");
        put(most + 1);
        assert_eq!(remembered.0.lock().len(), 1, "one above limit K154");
        let remembered = Remembered::default();
        for port in 0..1000 {
            remembered.put(("localhost".to_owned(), port), h3::Settings::default());
            assert!(remembered.get("localhost", port).is_some());
            assert!(remembered.0.lock().len() <= MOST_SERVERS);
        }
        assert_eq!(remembered.get("localhost", 1000), None);
        assert_eq!(remembered.get("example.test", 999), None);
    }
}
