//! Handshakes with the server, whose number is limited.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, QuicVersion, TransportConfig,
};
use courser_measure::{Failure, Peer, target};

use crate::probe::records::Collector;
use crate::probe::tap::Tap;
use crate::probe::trust::Witness;

/// Handshakes of one run, TLS over TCP included (K234).
pub const MOST_HANDSHAKES: u32 = 6;

/// Makes handshakes with one server, each from a port of its own.
#[derive(Debug)]
pub(crate) struct Dialler {
    pub(crate) address: SocketAddr,
    pub(crate) name: String,
    pub(crate) limit: Duration,
    pub(crate) used: u32,
    pub(crate) witness: Arc<Witness>,
}

/// An established connection, its endpoint, and the observations of both.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) connection: Connection,
    pub(crate) endpoint: Endpoint,
    pub(crate) tap: Tap,
    pub(crate) records: Collector,
    pub(crate) begun: Instant,
}

/// A handshake that has not completed.
#[derive(Debug)]
pub(crate) struct Dialling {
    pub(crate) connecting: Connecting,
    pub(crate) endpoint: Endpoint,
    pub(crate) tap: Tap,
    pub(crate) records: Collector,
    pub(crate) begun: Instant,
}

impl Dialler {
    /// Returns the configuration of a client of version 1 that offers these protocols.
    pub(crate) fn config(&self, protocols: &[String]) -> Result<ClientConfig, Failure> {
        let config = ClientConfig::with_verifier(self.witness.verifier())?
            .alpn(protocols.iter().map(|name| name.as_bytes().to_vec()))
            .versions([QuicVersion::V1]);
        Ok(config)
    }

    /// Returns false if no further handshake is allowed, and counts one otherwise.
    pub(crate) fn take(&mut self) -> bool {
        let is_allowed = self.used < MOST_HANDSHAKES;
        self.used += u32::from(is_allowed);
        is_allowed
    }

    /// Starts a handshake. Returns `None` if no further one is allowed.
    pub(crate) fn start(&mut self, config: ClientConfig) -> Result<Option<Dialling>, Failure> {
        if !self.take() {
            return Ok(None);
        }
        let local = SocketAddr::from((target::local_ip_for(self.address.ip()), 0));
        let tap = Tap::bind(local)?;
        let records = Collector::default();
        let transport = TransportConfig {
            handshake_timeout: self.limit,
            spin_bit: true,
            sinks: Some(Arc::new(records.clone())),
            ..TransportConfig::default()
        };
        let endpoint = Endpoint::builder().transport(tap.clone());
        let endpoint = endpoint.map_err(|error| Failure::new(error.to_string()))?;
        let begun = Instant::now();
        let config = config.transport_config(transport);
        let connecting = endpoint.connect_with(config, self.address, &self.name)?;
        Ok(Some(Dialling {
            connecting,
            endpoint,
            tap,
            records,
            begun,
        }))
    }

    /// Makes a handshake.
    pub(crate) async fn connect(
        &mut self,
        config: ClientConfig,
    ) -> Result<Option<Result<Line, ConnectionError>>, Failure> {
        let Some(Dialling {
            connecting,
            endpoint,
            tap,
            records,
            begun,
        }) = self.start(config)?
        else {
            return Ok(None);
        };
        Ok(Some(connecting.await.map(|connection| Line {
            connection,
            endpoint,
            tap,
            records,
            begun,
        })))
    }

    /// Makes the first handshake, which ends early if nothing listens on the port. The error suggests a
    /// remedy.
    pub(crate) async fn first(
        &mut self,
        config: ClientConfig,
    ) -> Result<Result<Line, String>, Failure> {
        let Some(dialling) = self.start(config)? else {
            return Ok(Err("no further handshake is allowed".to_owned()));
        };
        let Dialling {
            connecting,
            endpoint,
            tap,
            records,
            begun,
        } = dialling;
        let peer = Peer {
            address: self.address,
            name: &self.name,
        };
        let outcome = tokio::select! {
            outcome = connecting => outcome,
            () = target::nobody_listens(self.address) => return Ok(Err(peer.is_absent("udp").to_string())),
        };
        Ok(match outcome {
            Ok(connection) => Ok(Line {
                connection,
                endpoint,
                tap,
                records,
                begun,
            }),
            Err(error) => Err(self.explain(&error)),
        })
    }

    fn explain(&self, error: &ConnectionError) -> String {
        let Self {
            address,
            name,
            limit,
            ..
        } = self;
        if error.is_timeout() {
            return Peer {
                address: *address,
                name,
            }
            .is_silent("udp", *limit)
            .to_string();
        }
        match error_code(error).and_then(alert) {
            Some(NO_APPLICATION_PROTOCOL) => {
                format!(
                    "{address} speaks QUIC, but none of the offered protocols: pass --alpn NAME"
                )
            }
            Some(UNRECOGNIZED_NAME) => {
                format!(
                    "{address} speaks QUIC, but has no certificate for {name}: pass --server-name NAME"
                )
            }
            _ => format!("the handshake with {address} failed: {error}"),
        }
    }
}

/// Returns the error code of a connection that the server has closed.
pub(crate) fn error_code(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::ConnectionClosed(close) => Some(close.code.value()),
        _ => None,
    }
}

/// Returns the TLS alert of an error code (RFC 9001 §4.8).
pub(crate) fn alert(code: u64) -> Option<u8> {
    let alert = code.checked_sub(0x100)?;
    u8::try_from(alert).ok()
}

/// Alerts of RFC 8446 §6.2.
pub(crate) const NO_APPLICATION_PROTOCOL: u8 = 120;
const UNRECOGNIZED_NAME: u8 = 112;

impl Line {
    /// Closes the connection, and waits briefly until the server has received the close.
    pub(crate) async fn close(self) {
        self.connection
            .close(NO_ERROR.into(), b"courser-probe is done");
        drop(self.connection);
        let _ = tokio::time::timeout(CLOSING, self.endpoint.wait_idle()).await;
    }
}

/// H3_NO_ERROR, RFC 9114 §8.1; other protocols have no meaning for it.
const NO_ERROR: u32 = 0x100;
const CLOSING: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_limited() {
        let mut dialler = Dialler {
            address: ([127, 0, 0, 1], 1).into(),
            name: "localhost".to_owned(),
            limit: Duration::from_secs(1),
            used: 0,
            witness: Arc::new(Witness::new(None).expect("the system's trust")),
        };
        for number in 1..=10 {
            assert_eq!(dialler.take(), number <= MOST_HANDSHAKES, "{number}");
        }
        assert_eq!(dialler.used, MOST_HANDSHAKES);
    }

    #[test]
    fn codes_of_alerts_are_recognised() {
        for (code, expected) in [
            (0x178, Some(120)),
            (0x100, Some(0)),
            (0xff, None),
            (0x200, None),
        ] {
            assert_eq!(alert(code), expected, "{code:#x}");
        }
    }
}
