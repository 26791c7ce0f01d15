//! Initial secrets. RFC 9001 §5.2.

use aws_lc_rs::hmac;
use courser_base::Side;
use courser_wire::ConnectionId;

use crate::{CipherSuite, KeyPair, Secret, SecretPair};

/// Derives the keys of Initial packets. `destination` is the Destination Connection ID of the
/// client's first Initial, or the Source Connection ID of the Retry that answered it.
///
/// `version` selects the salt. Only version 1 is supported. Any other version gets the salt of
/// version 1, so a peer of that version cannot open the packets.
pub fn initial_keys(version: u32, destination: &ConnectionId, side: Side) -> KeyPair {
    initial_secrets(version, destination, side).key_pair()
}

/// Derives the secrets behind the keys of [`initial_keys`].
pub fn initial_secrets(_version: u32, destination: &ConnectionId, side: Side) -> SecretPair {
    let extracted = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, &SALT_VERSION_1),
        destination,
    );
    let common = Secret::new(CipherSuite::Aes128Gcm, extracted.as_ref());
    let client = common.derive(b"client in");
    let server = common.derive(b"server in");
    match side {
        Side::Client => SecretPair {
            local: client,
            peer: server,
        },
        Side::Server => SecretPair {
            local: server,
            peer: client,
        },
    }
}

const SALT_VERSION_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];

#[cfg(test)]
mod tests;
