//! Settings of TLS, and keys.

pub mod rustls;

use std::fmt;
use std::sync::Arc;

use ::rustls as tls;
use aws_lc_rs::hmac;
use courser_quic::EarlyDataOptions;

pub(crate) use self::keys::derived_token_key;
pub use self::keys::{AeadKey, HandshakeTokenKey};

mod keys;
#[cfg(feature = "ring")]
mod ring;

/// The settings of TLS of a client: [`rustls::QuicClientConfig`].
///
/// Unlike the trait of quinn, it cannot be implemented by a handshake other than TLS.
pub trait ClientConfig: Send + Sync {
    /// Returns the settings for courser.
    #[doc(hidden)]
    fn tls(&self) -> Arc<tls::ClientConfig>;
}

/// The settings of TLS of a server: [`rustls::QuicServerConfig`].
///
/// Unlike the trait of quinn, it cannot be implemented by a handshake other than TLS.
pub trait ServerConfig: Send + Sync {
    /// Returns the settings for courser.
    #[doc(hidden)]
    fn parts(&self) -> ServerParts;
}

/// The settings of TLS of a server, for courser.
#[doc(hidden)]
#[derive(Debug)]
pub struct ServerParts {
    pub(crate) tls: Arc<tls::ServerConfig>,
    /// Present if the server accepts early data.
    pub(crate) early_data: Option<EarlyDataOptions>,
}

/// A key that authenticates bytes.
pub trait HmacKey: Send + Sync {
    /// Writes the tag of `data`, of [`signature_len`](Self::signature_len) bytes.
    fn sign(&self, data: &[u8], signature_out: &mut [u8]);

    /// Returns the length of a tag in bytes.
    fn signature_len(&self) -> usize;

    /// Compares a tag.
    ///
    /// # Errors
    /// Returns [`CryptoError`] if it is another one than that of `data`.
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError>;
}

impl HmacKey for hmac::Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(hmac::sign(self, data).as_ref());
    }

    fn signature_len(&self) -> usize {
        self.algorithm().digest_algorithm().output_len()
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        hmac::verify(self, data, signature).map_err(|_| CryptoError)
    }
}

/// Derives a key of 32 bytes: the first bytes of tags of numbered labels.
pub(crate) fn derived_key(key: &dyn HmacKey) -> [u8; 32] {
    let mut tag = vec![0; key.signature_len().max(1)];
    let mut derived = [0; 32];
    for (count, part) in derived.chunks_mut(tag.len()).enumerate() {
        let label = format!("courser stateless reset {count}");
        key.sign(label.as_bytes(), &mut tag);
        part.copy_from_slice(&tag[..part.len()]);
    }
    derived
}

/// An error of a cryptographic operation, without details.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CryptoError;

/// An error of exporting keying material: the connection is over, or the request is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportKeyingMaterialError;

macro_rules! error {
    ($name:ident, $text:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)
            }
        }

        impl std::error::Error for $name {}
    };
}

error!(CryptoError, "cryptography failed");
error!(ExportKeyingMaterialError, "cannot export keying material");
