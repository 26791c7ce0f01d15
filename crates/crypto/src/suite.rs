//! The TLS 1.3 cipher suites that protect QUIC packets. RFC 9001 §5.3.

use aws_lc_rs::{aead, digest, hkdf};

/// A cipher suite: the AEAD of the packets and the hash of the key schedule.
///
/// TLS_AES_128_CCM_SHA256 is not offered; TLS_AES_128_CCM_8_SHA256 must not be used with QUIC
/// (RFC 9001 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256. Initial packets always use it, whatever TLS negotiates.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384, with keys of 32 bytes.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256, with keys of 32 bytes.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// Returns the length of the packet key and of the header key in bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Returns the hash of the key schedule.
    pub const fn hash(self) -> HashAlgorithm {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => HashAlgorithm::Sha256,
            Self::Aes256Gcm => HashAlgorithm::Sha384,
        }
    }

    /// Returns the number of packets that one key may seal. RFC 9001 §6.6.
    ///
    /// ChaCha20-Poly1305 allows more packets than there are packet numbers; its value is 2^62.
    pub const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 23,
            Self::ChaCha20Poly1305 => 1 << 62,
        }
    }

    /// Returns the number of packets that may fail authentication within one connection. RFC 9001
    /// §6.6.
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    /// Returns the name of the suite in the TLS registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        }
    }

    /// Returns the name of the implementation that protects packets of this suite on this machine: `AWS-LC`,
    /// or the instructions of a kernel of courser-fused.
    pub fn implementation(self) -> &'static str {
        #[cfg(feature = "fused")]
        if let Some(kernel) = self.kernel() {
            return kernel.name();
        }
        "AWS-LC"
    }

    /// Returns the kernel of courser-fused for packets of this suite. There is none for
    /// ChaCha20-Poly1305, none without the instructions, and none in FIPS builds: their cipher is that of
    /// the validated module.
    #[cfg(feature = "fused")]
    pub(crate) fn kernel(self) -> Option<courser_fused::Kernel> {
        match self {
            Self::ChaCha20Poly1305 => None,
            Self::Aes128Gcm | Self::Aes256Gcm if cfg!(feature = "fips") => None,
            Self::Aes128Gcm | Self::Aes256Gcm => courser_fused::Kernel::best(),
        }
    }

    pub(crate) fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(crate) fn header_protection(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::quic::AES_128,
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }
}

impl std::fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The hash function of a cipher suite.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HashAlgorithm {
    /// SHA-256, whose output has 32 bytes.
    Sha256,
    /// SHA-384, whose output has 48 bytes.
    Sha384,
}

impl HashAlgorithm {
    /// Returns the output length in bytes. Traffic secrets have the same length.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    pub(crate) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Sha256 => hkdf::HKDF_SHA256,
            Self::Sha384 => hkdf::HKDF_SHA384,
        }
    }

    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
        }
    }
}

/// The length of the longest key, that of AES-256 and ChaCha20.
pub(crate) const MAX_KEY_LEN: usize = 32;
