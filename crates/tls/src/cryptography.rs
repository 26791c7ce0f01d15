//! The choice of cipher suites and key exchange groups.

use std::fmt;
use std::sync::Arc;

use courser_crypto::CipherSuite;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};

use crate::provider::{self};

/// A key exchange group of TLS 1.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeyExchange {
    /// X25519 and ML-KEM-768. Secure as long as one of the two is, also against quantum computers.
    X25519MlKem768,
    /// P-256 and ML-KEM-768, a hybrid of approved algorithms.
    Secp256r1MlKem768,
    /// ML-KEM-768 without a classical group.
    MlKem768,
    /// ML-KEM-1024 without a classical group.
    MlKem1024,
    /// X25519 (RFC 7748), not secure against quantum computers.
    X25519,
    /// P-256 (secp256r1), not secure against quantum computers.
    Secp256r1,
    /// P-384 (secp384r1), not secure against quantum computers.
    Secp384r1,
}

impl KeyExchange {
    /// All groups, as names are looked up.
    pub const ALL: [Self; 7] = [
        Self::X25519MlKem768,
        Self::Secp256r1MlKem768,
        Self::MlKem768,
        Self::MlKem1024,
        Self::X25519,
        Self::Secp256r1,
        Self::Secp384r1,
    ];

    /// Returns the name of the group in the TLS registry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X25519MlKem768 => "X25519MLKEM768",
            Self::Secp256r1MlKem768 => "SecP256r1MLKEM768",
            Self::MlKem768 => "MLKEM768",
            Self::MlKem1024 => "MLKEM1024",
            Self::X25519 => "x25519",
            Self::Secp256r1 => "secp256r1",
            Self::Secp384r1 => "secp384r1",
        }
    }

    /// Returns another common name of the group, such as `P-256`.
    const fn other_name(self) -> &'static str {
        match self {
            Self::Secp256r1 => "P-256",
            Self::Secp384r1 => "P-384",
            _ => self.name(),
        }
    }

    fn group(self) -> &'static dyn SupportedKxGroup {
        match self {
            Self::X25519MlKem768 => provider::X25519_ML_KEM_768,
            Self::Secp256r1MlKem768 => provider::P256_ML_KEM_768,
            Self::MlKem768 => provider::ML_KEM_768,
            Self::MlKem1024 => provider::ML_KEM_1024,
            Self::X25519 => provider::X25519,
            Self::Secp256r1 => provider::P256,
            Self::Secp384r1 => provider::P384,
        }
    }
}

impl fmt::Display for KeyExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The cipher suites and key exchange groups that an end supports.
///
/// The default supports the three suites of TLS 1.3, AES-128-GCM first, and X25519MLKEM768, X25519,
/// P-256 and P-384 in this order. With the feature `fips` it supports only the approved ones.
///
/// ```
/// # extern crate courser_tls as courser;
/// use courser::{Cryptography, KeyExchange};
///
/// # fn main() -> Result<(), courser::UnknownAlgorithm> {
/// let post_quantum_only = Cryptography::default().groups([KeyExchange::X25519MlKem768]);
/// let by_name = Cryptography::default()
///     .groups_by_name("X25519MLKEM768:x25519")?
///     .suites_by_name("TLS_CHACHA20_POLY1305_SHA256")?;
/// # let _ = (post_quantum_only, by_name);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cryptography {
    suites: Vec<CipherSuite>,
    groups: Vec<KeyExchange>,
}

impl Cryptography {
    /// Sets the cipher suites of TLS 1.3, the preferred one first. An empty list means the default.
    #[must_use]
    pub fn suites(mut self, suites: impl IntoIterator<Item = CipherSuite>) -> Self {
        self.suites = without_duplicates(suites);
        self
    }

    /// Sets the key exchange groups, the preferred one first. An empty list means the default.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = KeyExchange>) -> Self {
        self.groups = without_duplicates(groups);
        self
    }

    /// Sets the cipher suites by their names in the TLS registry, separated by colons or commas.
    ///
    /// # Errors
    /// Returns [`UnknownAlgorithm`], which lists the known names, if a name is unknown.
    pub fn suites_by_name(self, names: &str) -> Result<Self, UnknownAlgorithm> {
        let all = DEFAULT_SUITES.map(|suite| (suite, [suite.name(), suite.name()]));
        Ok(self.suites(by_name(names, "cipher suite", &all)?))
    }

    /// Sets the key exchange groups by their names in the TLS registry, or `P-256` and `P-384`,
    /// separated by colons or commas.
    ///
    /// # Errors
    /// Returns [`UnknownAlgorithm`], which lists the known names, if a name is unknown.
    pub fn groups_by_name(self, names: &str) -> Result<Self, UnknownAlgorithm> {
        let all = KeyExchange::ALL.map(|group| (group, [group.name(), group.other_name()]));
        Ok(self.groups(by_name(names, "key exchange group", &all)?))
    }

    /// Returns true if an order of cipher suites was set.
    pub fn has_suites(&self) -> bool {
        !self.suites.is_empty()
    }

    /// Returns the provider for TLS 1.3, with these suites and groups.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = provider::default_provider();
        provider.cipher_suites.clear();
        self.apply(&mut provider);
        Arc::new(provider)
    }

    /// Returns the provider for TLS 1.3 and 1.2, with these suites and groups. The suites of TLS 1.2 are
    /// those of [`crypto_provider`](crate::crypto_provider).
    pub fn provider_with_tls12(&self) -> Arc<CryptoProvider> {
        let mut provider = provider::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_none());
        self.apply(&mut provider);
        Arc::new(provider)
    }

    /// Returns true if this choice uses only approved algorithms of the FIPS module, which needs the feature
    /// `fips`.
    pub fn is_fips(&self) -> bool {
        cfg!(feature = "fips") && self.provider().fips()
    }

    /// Inserts the suites before those of the provider, and replaces its groups if any were set.
    fn apply(&self, provider: &mut CryptoProvider) {
        let suites: &[_] = match self.suites.is_empty() {
            true if cfg!(feature = "fips") => &DEFAULT_SUITES[..FIPS_SUITES],
            true => &DEFAULT_SUITES,
            false => &self.suites,
        };
        let suites = suites.iter().copied().map(provider::tls13_suite);
        provider.cipher_suites.splice(0..0, suites);
        if !self.groups.is_empty() {
            provider.kx_groups = self.groups.iter().map(|group| group.group()).collect();
        } else if cfg!(feature = "fips") {
            provider.kx_groups.retain(|group| group.fips());
        }
    }
}

/// Returns the cryptography provider of all configurations of this crate, with these TLS 1.3 cipher
/// suites in this order. An empty list means all suites.
pub fn provider(suites: &[CipherSuite]) -> Arc<CryptoProvider> {
    let suites = suites.iter().copied();
    Cryptography::default().suites(suites).provider()
}

/// The error for an unknown name of a cipher suite or key exchange group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAlgorithm {
    kind: &'static str,
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, known } = self;
        write!(f, "unknown {kind} '{name}': known are {}", known.join(", "))
    }
}

impl std::error::Error for UnknownAlgorithm {}

/// Returns the values with these names, which are separated by colons or commas. Ignores case.
fn by_name<T: Copy>(
    names: &str,
    kind: &'static str,
    all: &[(T, [&'static str; 2])],
) -> Result<Vec<T>, UnknownAlgorithm> {
    let find = |name: &str| {
        let is_it = |known: &&'static str| known.eq_ignore_ascii_case(name);
        let found = all.iter().find(|(_, known)| known.iter().any(is_it));
        found
            .map(|(value, _)| *value)
            .ok_or_else(|| UnknownAlgorithm {
                kind,
                name: name.chars().take(MAX_NAME).collect(),
                known: all.iter().map(|(_, names)| names[0]).collect(),
            })
    };
    names
        .split([':', ','])
        .map(|name| find(name.trim()))
        .collect()
}

/// Returns the values in their order, without duplicates.
fn without_duplicates<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// All suites, the fastest on machines with AES instructions first.
const DEFAULT_SUITES: [CipherSuite; 3] = [
    CipherSuite::Aes128Gcm,
    CipherSuite::Aes256Gcm,
    CipherSuite::ChaCha20Poly1305,
];

/// Number of the default suites that are approved for FIPS 140. They come first.
const FIPS_SUITES: usize = 2;

/// Maximum number of characters of an unknown name in an error.
const MAX_NAME: usize = 40;

#[cfg(test)]
mod tests;
