//! QUIC packet protection on aws-lc-rs, without a TLS library.
//!
//! Keys derive from a [`Secret`]. Initial secrets come from a connection ID ([`initial`]), all
//! others from TLS through [`TlsSession`]. [`PacketKey`] and [`HeaderKey`] protect packets;
//! [`OneRttKeys`] protects them across key updates. The other modules cover the remaining secrets
//! of an endpoint: Retry integrity tags, stateless reset tokens, address tokens, encrypted connection IDs and random
//! numbers.
//!
//! This crate reads no clock and has no source of randomness: the caller seeds [`Rng`]. Secrets are
//! erased when they are dropped.

pub mod aead_limits;
pub mod header_protection;
pub mod initial;
pub mod key_update;
pub mod reset_token;
pub mod retry_integrity;
pub mod rng;
pub mod session;
pub mod token_seal;

mod block_key;
mod exporter;
mod hkdf_label;
mod keys;
mod level;
mod packet_nonce;
mod packet_protection;
mod secret;
mod suite;

pub use aead_limits::ForgeryCounter;
pub use block_key::{BLOCK_LEN, BlockKey};
pub use exporter::{ExportError, Exporter};
pub use header_protection::HeaderKey;
pub use key_update::{OneRttKeys, OneRttOpenError, Opened, StoredKeys};
pub use keys::{KeyPair, Keys};
pub use level::{EncryptionLevel, Space};
pub use packet_nonce::PacketNonce;
pub use packet_protection::{OpenError, PacketKey, TAG_LEN};
pub use reset_token::ResetKey;
pub use rng::Rng;
pub use secret::{Secret, SecretPair};
pub use session::{
    Answer, ClientTls, HandshakeData, KeyChange, ServerTls, TicketOrigin, TlsError, TlsSession,
    TlsStartError,
};
pub use suite::{CipherSuite, HashAlgorithm};
pub use token_seal::TokenKey;

#[cfg(test)]
mod testing;
