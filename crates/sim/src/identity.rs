//! One certificate for all servers of all worlds.

use courser::Identity;

/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";

/// The certificate, valid from 2020 to 9999, with an Ed25519 key.
const CERTIFICATE: &[u8] = include_bytes!("host/certificate.pem");
/// The private key. It is public and must not be used outside of a world.
const KEY: &[u8] = include_bytes!("host/key.pem");

/// Returns a certificate for `localhost` with its key, the same in every run.
///
/// Its signatures have a fixed length, so that the sizes of handshakes do not differ between runs,
/// as they do with [`Identity::dev`]. The key is public, so the certificate does not authenticate a
/// server outside of a world.
///
/// ```
/// use courser::{ClientConfig, ServerConfig};
/// use courser_sim::identity::identity;
///
/// # fn main() -> Result<(), courser::ConfigError> {
/// let server = ServerConfig::with_identity(&identity())?.alpn(["mine"]);
/// let client = ClientConfig::with_roots([identity().certificate()])?.alpn(["mine"]);
/// # Ok(()) }
/// ```
pub fn identity() -> Identity {
    Identity::from_pem(CERTIFICATE, KEY).expect("the files in this directory are PEM")
}
