//! The cipher suites of TLS 1.2 with ECDHE.

use rustls::crypto::KeyExchangeAlgorithm;
use rustls::{CipherSuite as Name, SignatureScheme, SupportedCipherSuite, Tls12CipherSuite};

use super::super::records::Aead;
use super::{SHA256, SHA384, common};

/// Defines a suite.
macro_rules! tls12 {
    ($name:ident, $aead:ident, $schedule:ident, $sign:expr) => {
        static $name: Tls12CipherSuite = Tls12CipherSuite {
            common: common(Name::$name, Aead::$aead, &$schedule),
            kx: KeyExchangeAlgorithm::ECDHE,
            sign: $sign,
            prf_provider: &$schedule,
            aead_alg: &Aead::$aead,
        };
    };
}

tls12!(
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    Aes256Gcm,
    SHA384,
    ECDSA
);
tls12!(
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    Aes128Gcm,
    SHA256,
    ECDSA
);
tls12!(
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ChaCha20Poly1305,
    SHA256,
    ECDSA
);
tls12!(
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    Aes256Gcm,
    SHA384,
    RSA
);
tls12!(
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    Aes128Gcm,
    SHA256,
    RSA
);
tls12!(
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ChaCha20Poly1305,
    SHA256,
    RSA
);

/// The suites, the preferred one first.
pub(in crate::provider) const SUITES: [SupportedCipherSuite; 6] = [
    SupportedCipherSuite::Tls12(&TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    SupportedCipherSuite::Tls12(&TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    SupportedCipherSuite::Tls12(&TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    SupportedCipherSuite::Tls12(&TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    SupportedCipherSuite::Tls12(&TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    SupportedCipherSuite::Tls12(&TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The signatures of servers with an ECDSA key or an Ed25519 key (RFC 8422 §5.10).
const ECDSA: &[SignatureScheme] = &[
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP256_SHA256,
];

/// The signatures of servers with an RSA key.
const RSA: &[SignatureScheme] = &[
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];
