//! The cipher suites.

#[cfg(feature = "tls12")]
pub(super) mod tls12;

use courser_crypto::CipherSuite;
use rustls::crypto::CipherSuiteCommon;
use rustls::{CipherSuite as Name, SupportedCipherSuite, Tls13CipherSuite};

use super::hash::Sha;
use super::key_schedule::KeySchedule;
use super::records::Aead;

/// Defines a suite of TLS 1.3.
macro_rules! tls13 {
    ($name:ident, $aead:ident, $schedule:ident) => {
        static $name: Tls13CipherSuite = Tls13CipherSuite {
            common: common(Name::$name, Aead::$aead, &$schedule),
            hkdf_provider: &$schedule,
            aead_alg: &Aead::$aead,
            quic: Some(&Aead::$aead),
        };
    };
}

tls13!(TLS13_AES_128_GCM_SHA256, Aes128Gcm, SHA256);
tls13!(TLS13_AES_256_GCM_SHA384, Aes256Gcm, SHA384);
tls13!(TLS13_CHACHA20_POLY1305_SHA256, ChaCha20Poly1305, SHA256);

/// The suites of TLS 1.3, the preferred one first.
pub(super) const TLS13_SUITES: [SupportedCipherSuite; 3] = [
    SupportedCipherSuite::Tls13(&TLS13_AES_256_GCM_SHA384),
    SupportedCipherSuite::Tls13(&TLS13_AES_128_GCM_SHA256),
    SupportedCipherSuite::Tls13(&TLS13_CHACHA20_POLY1305_SHA256),
];

/// Returns a suite of TLS 1.3 for rustls.
pub(crate) const fn tls13_suite(suite: CipherSuite) -> SupportedCipherSuite {
    SupportedCipherSuite::Tls13(match suite {
        CipherSuite::Aes128Gcm => &TLS13_AES_128_GCM_SHA256,
        CipherSuite::Aes256Gcm => &TLS13_AES_256_GCM_SHA384,
        CipherSuite::ChaCha20Poly1305 => &TLS13_CHACHA20_POLY1305_SHA256,
    })
}

const fn common(suite: Name, aead: Aead, schedule: &'static KeySchedule) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite,
        hash_provider: &schedule.0,
        // RFC 8446 §5.5: 2^24.5 records with AES-GCM. ChaCha20-Poly1305 is limited by the sequence numbers.
        confidentiality_limit: match aead {
            Aead::ChaCha20Poly1305 => u64::MAX,
            Aead::Aes128Gcm | Aead::Aes256Gcm => 1 << 24,
        },
    }
}

static SHA256: KeySchedule = KeySchedule(Sha::Sha256);
static SHA384: KeySchedule = KeySchedule(Sha::Sha384);
