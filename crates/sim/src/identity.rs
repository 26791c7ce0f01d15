//! One certificate for all servers of all worlds.

use courser::Identity;

/// The name that the certificate is for.
pub const SERVER_NAME: &str = "localhost";

/// Valid from 2020 to 9999; an Ed25519 key.
const CERTIFICATE: &[u8] = include_bytes!("host/certificate.pem");
/// Known to everybody, and good for nothing outside of a world.
const KEY: &[u8] = include_bytes!("host/key.pem");

/// A certificate for `localhost` and its key, the same in every run.
///
/// Its signatures have a fixed length, so that handshakes do not differ in size from run to run,
/// as they do with [`Identity::dev`]. Everybody knows the key: it proves nothing.
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
