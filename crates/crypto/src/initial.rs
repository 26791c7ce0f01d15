//! Initial secrets. RFC 9001 §5.2, RFC 9369 §3.3.1.

use aws_lc_rs::hmac;
use courser_base::Side;
use courser_wire::{ConnectionId, VERSION_2};

use crate::{CipherSuite, KeyPair, Secret, SecretPair};

/// Derives the keys of Initial packets. `destination` is the Destination Connection ID of the
/// client's first Initial, or the Source Connection ID of the Retry that answered it.
///
/// `version` selects the salt and the labels. A version other than 1 and 2 has those of version 1,
/// so a peer of that version cannot open the packets.
pub fn initial_keys(version: u32, destination: &ConnectionId, side: Side) -> KeyPair {
    initial_secrets(version, destination, side).key_pair()
}

/// Derives the secrets behind the keys of [`initial_keys`].
pub fn initial_secrets(version: u32, destination: &ConnectionId, side: Side) -> SecretPair {
    let salt = match version {
        VERSION_2 => &SALT_VERSION_2,
        _ => &SALT_VERSION_1,
    };
    let extracted = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, salt), destination);
    let common = Secret::new(CipherSuite::Aes128Gcm, extracted.as_ref()).of_version(version);
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

/// The salt of version 2. RFC 9369 §3.3.1.
const SALT_VERSION_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];

#[cfg(test)]
mod tests;
