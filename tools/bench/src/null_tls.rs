//! A handshake with the messages and keys of TLS and without its computations.
//!
//! The messages have usual lengths and carry the transport parameters. The secrets are constants, so nothing is
//! authentic or confidential. All this is for counting instructions only.

use std::mem;

use courser_crypto::{
    CipherSuite, ClientTls, EncryptionLevel, Exporter, HandshakeData, KeyChange, Secret,
    SecretPair, ServerTls, TlsError, TlsSession, TlsStartError,
};

/// Starts sessions of either side.
pub(crate) struct NullTls;

impl ClientTls for NullTls {
    fn start(&self, _: &str, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let mut session = Session::new(true);
        session.flights = vec![Flight {
            bytes: message(&parameters, CLIENT_HELLO),
            change: None,
        }];
        Ok(Box::new(session))
    }
}

impl ServerTls for NullTls {
    fn start(&self, parameters: Vec<u8>) -> Result<Box<dyn TlsSession>, TlsStartError> {
        let mut session = Session::new(false);
        session.parameters = parameters;
        Ok(Box::new(session))
    }
}

struct Session {
    is_client: bool,
    /// Our transport parameters, until a server has sent them.
    parameters: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
    /// The part of a message that has arrived.
    incoming: Vec<u8>,
    /// Flights to write, the first one first.
    flights: Vec<Flight>,
    /// Messages of the peer that were read.
    read: usize,
    is_complete: bool,
}

/// Bytes to write, and the keys that follow them.
struct Flight {
    bytes: Vec<u8>,
    change: Option<KeyChange>,
}

impl Session {
    fn new(is_client: bool) -> Self {
        Self {
            is_client,
            parameters: Vec::new(),
            peer_parameters: None,
            incoming: Vec::new(),
            flights: Vec::new(),
            read: 0,
            is_complete: false,
        }
    }

    fn on_message(&mut self, parameters: Vec<u8>) {
        self.read += 1;
        let handshake = KeyChange::Handshake(secrets(self.is_client, 1));
        let one_rtt = KeyChange::OneRtt(secrets(self.is_client, 2));
        match (self.is_client, self.read) {
            // ServerHello.
            (true, 1) => self.write(Vec::new(), handshake),
            // EncryptedExtensions to Finished.
            (true, _) => {
                self.peer_parameters = Some(parameters);
                self.write(message(&[], FINISHED), one_rtt);
                self.is_complete = true;
            }
            // ClientHello.
            (false, 1) => {
                self.peer_parameters = Some(parameters);
                self.write(message(&[], SERVER_HELLO), handshake);
                let ours = mem::take(&mut self.parameters);
                self.write(message(&ours, SERVER_FLIGHT), one_rtt);
            }
            // Finished.
            (false, _) => self.is_complete = true,
        }
    }

    fn write(&mut self, bytes: Vec<u8>, change: KeyChange) {
        let change = Some(change);
        self.flights.push(Flight { bytes, change });
    }
}

impl TlsSession for Session {
    fn read(&mut self, _: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        self.incoming.extend_from_slice(data);
        while let Some((parameters, len)) = split(&self.incoming) {
            self.incoming.drain(..len);
            self.on_message(parameters);
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        if self.flights.is_empty() {
            return None;
        }
        let flight = self.flights.remove(0);
        out.extend(flight.bytes);
        flight.change
    }

    fn is_handshaking(&self) -> bool {
        !self.is_complete
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.peer_parameters.as_deref()
    }

    fn handshake_data(&self) -> HandshakeData {
        HandshakeData::default()
    }

    fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        None
    }

    fn exporter(&self) -> Option<Exporter> {
        None
    }

    fn can_be_dropped(&self) -> bool {
        self.is_complete && !self.is_client && self.flights.is_empty()
    }
}

/// Returns the secrets of one level: a byte of `level` for the client, and of its complement for the server.
fn secrets(is_client: bool, level: u8) -> SecretPair {
    let secret = |byte| Secret::new(CipherSuite::Aes128Gcm, &[byte; 32]);
    let (client, server) = (secret(level), secret(!level));
    match is_client {
        true => SecretPair {
            local: client,
            peer: server,
        },
        false => SecretPair {
            local: server,
            peer: client,
        },
    }
}

/// Returns a message with transport parameters, filled up to `len` bytes: its length, that of the parameters,
/// the parameters, zeros.
fn message(parameters: &[u8], len: usize) -> Vec<u8> {
    let total = len.max(4 + parameters.len());
    let mut bytes = Vec::with_capacity(total);
    bytes.extend((total as u16).to_be_bytes());
    bytes.extend((parameters.len() as u16).to_be_bytes());
    bytes.extend_from_slice(parameters);
    bytes.resize(total, 0);
    bytes
}

/// Returns the parameters and the length of the first message in `bytes`, or `None` if it is incomplete.
fn split(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let number = |at: usize| {
        let two = bytes.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([two[0], two[1]])))
    };
    let (total, len) = (number(0)?, number(2)?);
    let message = bytes.get(..total)?;
    Some((message.get(4..4 + len)?.to_vec(), total))
}

// Lengths with X25519 and a certificate for P-256.
const CLIENT_HELLO: usize = 300;
const SERVER_HELLO: usize = 90;
const SERVER_FLIGHT: usize = 800;
const FINISHED: usize = 36;
