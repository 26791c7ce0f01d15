//! QUIC packet protection on aws-lc-rs, without a TLS library.
//!
//! [`Secret`] is where keys come from: Initial secrets from a connection ID ([`initial`]), all
//! others from TLS through [`TlsSession`]. [`PacketKey`] and [`HeaderKey`] protect packets,
//! [`OneRttKeys`] does so across key updates. The rest is what else an endpoint needs secrets
//! for: Retry tags, stateless reset tokens, address tokens, random numbers.
//!
//! Nothing in here reads a clock or draws random numbers of its own: [`Rng`] is seeded by the
//! caller. Secrets are erased when they are dropped.

pub mod aead_limits;
pub mod header_protection;
pub mod initial;
pub mod key_update;
pub mod reset_token;
pub mod retry_integrity;
pub mod rng;
pub mod session;
pub mod token_seal;

mod exporter;
mod hkdf_label;
mod keys;
mod level;
mod packet_protection;
mod secret;
mod suite;

pub use aead_limits::ForgeryCounter;
pub use exporter::{ExportError, Exporter};
pub use header_protection::HeaderKey;
pub use key_update::{OneRttKeys, OneRttOpenError, Opened};
pub use keys::{KeyPair, Keys, SecretPair};
pub use level::{EncryptionLevel, Space};
pub use packet_protection::{OpenError, PacketKey, TAG_LEN};
pub use reset_token::ResetKey;
pub use rng::Rng;
pub use secret::Secret;
pub use session::{
    ClientTls, HandshakeData, KeyChange, ServerTls, TlsError, TlsSession, TlsStartError,
};
pub use suite::{CipherSuite, HashAlgorithm};
pub use token_seal::TokenKey;

#[cfg(test)]
mod testing;
