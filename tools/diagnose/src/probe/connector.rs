//! Connects to the server, with a limited number of handshakes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::{
    AddressObservations, ClientConfig, Connecting, Connection, ConnectionError, Endpoint,
    QuicVersion, TransportConfig,
};
use courser_measure::{Failure, Peer, target};

use crate::probe::recording_socket::RecordingSocket;
use crate::probe::recording_verifier::RecordingVerifier;
use crate::probe::records::Collector;

/// The largest number of handshakes in one run, including TLS over TCP and an announced port (K234).
pub const MAX_HANDSHAKES: u32 = 7;

/// Opens connections to one server, each from its own port.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) address: SocketAddr,
    pub(crate) name: String,
    pub(crate) limit: Duration,
    pub(crate) used: u32,
    pub(crate) verifier: Arc<RecordingVerifier>,
}

/// An established connection with its endpoint, and the observations of both.
#[derive(Debug)]
pub(crate) struct ProbeConnection {
    pub(crate) connection: Connection,
    pub(crate) endpoint: Endpoint,
    pub(crate) socket: RecordingSocket,
    pub(crate) records: Collector,
    pub(crate) began: Instant,
}

/// A connection whose handshake has not completed.
#[derive(Debug)]
pub(crate) struct PendingConnection {
    pub(crate) connecting: Connecting,
    pub(crate) endpoint: Endpoint,
    pub(crate) socket: RecordingSocket,
    pub(crate) records: Collector,
    pub(crate) began: Instant,
}

impl Connector {
    /// Returns a client configuration for QUIC version 1 that offers these application protocols.
    pub(crate) fn config(&self, protocols: &[String]) -> Result<ClientConfig, Failure> {
        let config = ClientConfig::with_verifier(self.verifier.verifier())?
            .alpn(protocols.iter().map(|name| name.as_bytes().to_vec()))
            .versions([QuicVersion::V1]);
        Ok(config)
    }

    /// Counts a handshake, and returns true. Returns false if no further handshake is allowed.
    pub(crate) fn take(&mut self) -> bool {
        let is_allowed = self.used < MAX_HANDSHAKES;
        self.used += u32::from(is_allowed);
        is_allowed
    }

    /// Starts a handshake. Returns `None` if no further one is allowed.
    pub(crate) fn start(
        &mut self,
        config: ClientConfig,
    ) -> Result<Option<PendingConnection>, Failure> {
        if !self.take() {
            return Ok(None);
        }
        let local = SocketAddr::from((target::local_ip_for(self.address.ip()), 0));
        let socket = RecordingSocket::bind(local)?;
        let records = Collector::default();
        let transport = TransportConfig {
            handshake_timeout: self.limit,
            spin_bit: true,
            sinks: Some(Arc::new(records.clone())),
            address_observations: AddressObservations::Receive,
            ..TransportConfig::default()
        };
        let endpoint = Endpoint::builder().transport(socket.clone());
        let endpoint = endpoint.map_err(|error| Failure::new(error.to_string()))?;
        let began = Instant::now();
        let config = config.transport_config(transport);
        let connecting = endpoint.connect_with(config, self.address, &self.name)?;
        Ok(Some(PendingConnection {
            connecting,
            endpoint,
            socket,
            records,
            began,
        }))
    }

    /// Connects to the server. Returns `None` if no further handshake is allowed.
    pub(crate) async fn connect(
        &mut self,
        config: ClientConfig,
    ) -> Result<Option<Result<ProbeConnection, ConnectionError>>, Failure> {
        let Some(PendingConnection {
            connecting,
            endpoint,
            socket,
            records,
            began,
        }) = self.start(config)?
        else {
            return Ok(None);
        };
        Ok(Some(connecting.await.map(|connection| ProbeConnection {
            connection,
            endpoint,
            socket,
            records,
            began,
        })))
    }

    /// Performs the first handshake, which fails early if no program listens on the port. The error suggests a
    /// remedy.
    pub(crate) async fn first(
        &mut self,
        config: ClientConfig,
    ) -> Result<Result<ProbeConnection, String>, Failure> {
        let Some(pending) = self.start(config)? else {
            return Ok(Err("no further handshake is allowed".to_owned()));
        };
        let PendingConnection {
            connecting,
            endpoint,
            socket,
            records,
            began,
        } = pending;
        let peer = Peer {
            address: self.address,
            name: &self.name,
        };
        let outcome = tokio::select! {
            outcome = connecting => outcome,
            () = target::port_closed(self.address) => return Ok(Err(peer.not_listening("udp").to_string())),
        };
        Ok(match outcome {
            Ok(connection) => Ok(ProbeConnection {
                connection,
                endpoint,
                socket,
                records,
                began,
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
            .no_answer("udp", *limit)
            .to_string();
        }
        match error_code(error).and_then(alert) {
            Some(NO_APPLICATION_PROTOCOL) => {
                format!(
                    "{address} supports QUIC, but none of the offered protocols: pass --alpn NAME"
                )
            }
            Some(UNRECOGNIZED_NAME) => {
                format!(
                    "{address} supports QUIC, but has no certificate for {name}: pass --server-name NAME"
                )
            }
            _ => format!("the handshake with {address} failed: {error}"),
        }
    }
}

/// Returns the error code with which the server closed a connection.
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

/// TLS alerts (RFC 8446 §6.2).
pub(crate) const NO_APPLICATION_PROTOCOL: u8 = 120;
const UNRECOGNIZED_NAME: u8 = 112;

impl ProbeConnection {
    /// Closes the connection, and waits briefly until the server has received the close.
    pub(crate) async fn close(self) {
        self.connection
            .close(NO_ERROR.into(), b"courser-probe is done");
        drop(self.connection);
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.endpoint.wait_idle()).await;
    }
}

/// The code H3_NO_ERROR (RFC 9114 §8.1), which has no meaning in other protocols.
const NO_ERROR: u32 = 0x100;
const CLOSE_TIMEOUT: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_limited() {
        let mut connector = Connector {
            address: ([127, 0, 0, 1], 1).into(),
            name: "localhost".to_owned(),
            limit: Duration::from_secs(1),
            used: 0,
            verifier: Arc::new(RecordingVerifier::new(None).expect("the system's trust")),
        };
        for number in 1..=10 {
            assert_eq!(connector.take(), number <= MAX_HANDSHAKES, "{number}");
        }
        assert_eq!(connector.used, MAX_HANDSHAKES);
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
