//! Helpers that several tests share.

use crate::{CipherSuite, Secret, SecretPair};

pub(crate) const SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];

/// Decodes hexadecimal digits and ignores white space.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a secret whose bytes are all `fill`.
pub(crate) fn secret(suite: CipherSuite, fill: u8) -> Secret {
    Secret::new(suite, &vec![fill; suite.hash().output_len()])
}

/// Returns the secrets of both ends of one connection, client first.
pub(crate) fn secret_pairs(suite: CipherSuite) -> (SecretPair, SecretPair) {
    let client = SecretPair {
        local: secret(suite, 1),
        peer: secret(suite, 2),
    };
    let server = SecretPair {
        local: secret(suite, 2),
        peer: secret(suite, 1),
    };
    (client, server)
}

/// Returns the connection ID of the examples in RFC 9001 appendix A.
pub(crate) fn example_id() -> courser_wire::ConnectionId {
    courser_wire::ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
}
