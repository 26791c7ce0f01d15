//! The limit of a transfer, and the parameters that a handshake negotiated.

use std::time::Instant;

use courser::{CipherSuite, Connection};
use serde::Serialize;

/// The limit of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    Bytes(u64),
    At(Instant),
}

/// The parameters that a handshake negotiated.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
pub struct Agreed {
    /// The cipher suite by its AEAD, such as `AES-128-GCM`.
    pub suite: Option<String>,
    /// The key exchange group, such as `X25519MLKEM768`.
    pub key_exchange: Option<String>,
    /// True if the handshake resumed a session.
    pub resumed: bool,
}

impl Agreed {
    pub(crate) fn of_quic(connection: &Connection) -> Self {
        let data = connection.handshake_data();
        let suite = data
            .as_ref()
            .and_then(|data| data.suite)
            .map(|suite| match suite {
                CipherSuite::Aes128Gcm => "AES-128-GCM",
                CipherSuite::Aes256Gcm => "AES-256-GCM",
                CipherSuite::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            });
        Self {
            suite: suite.map(str::to_owned),
            key_exchange: data.as_ref().and_then(|data| data.key_exchange.clone()),
            resumed: data.is_some_and(|data| data.resumed),
        }
    }
}
