//! The choice of a certificate by the name that a client requests (RFC 6066 §3).

use std::collections::HashMap;
use std::sync::Arc;

use courser_tls::rustls::sign::CertifiedKey;

use super::facts::CertificateFacts;

/// Several certificates, indexed by the names for which they are valid.
///
/// An exact name takes precedence over a wildcard, and the first certificate over later ones with the same name.
/// Clients that request no name, or one without a certificate, get the first certificate, because their message
/// about it is more helpful than an alert.
#[derive(Debug)]
pub(crate) struct ByName {
    keys: Vec<Arc<CertifiedKey>>,
    exact: HashMap<Box<str>, usize>,
    /// The names after `*.`.
    wildcards: HashMap<Box<str>, usize>,
}

impl ByName {
    /// Without a certificate, as before the first one from ACME, all clients are refused.
    pub(super) fn new(keys: Vec<Arc<CertifiedKey>>) -> Self {
        let (mut exact, mut wildcards) = (HashMap::new(), HashMap::new());
        for (index, key) in keys.iter().enumerate() {
            let names = CertificateFacts::of(key).map(|facts| facts.names);
            for name in names.unwrap_or_default() {
                let name = name.to_ascii_lowercase();
                match name.strip_prefix("*.") {
                    Some(parent) => wildcards.entry(parent.into()).or_insert(index),
                    None => exact.entry(name.into()).or_insert(index),
                };
            }
        }
        Self {
            keys,
            exact,
            wildcards,
        }
    }

    /// Returns the certificates with `key` instead of the one at `index`, if there is one.
    pub(super) fn with_replaced(&self, index: usize, key: CertifiedKey) -> Self {
        let mut keys = self.keys.clone();
        keys.splice(index..keys.len().min(index + 1), [Arc::new(key)]);
        Self::new(keys)
    }

    /// Returns the certificates with another one at the end.
    pub(super) fn with_added(&self, key: CertifiedKey) -> Self {
        let mut keys = self.keys.clone();
        keys.push(Arc::new(key));
        Self::new(keys)
    }

    /// Returns all certificates, the default one first.
    pub(super) fn all(&self) -> &[Arc<CertifiedKey>] {
        &self.keys
    }

    /// Returns the certificate for a client that requests `name`.
    pub(super) fn choose(&self, name: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        let index = match name {
            Some(name) if self.keys.len() > 1 => self.index_of(name),
            _ => 0,
        };
        self.keys.get(index)
    }

    fn index_of(&self, name: &str) -> usize {
        let name = name.to_ascii_lowercase();
        // A wildcard matches one label (RFC 9525 §6.3).
        let parent = || name.split_once('.').map(|(_, parent)| parent);
        let exact = self.exact.get(&*name);
        let found = exact.or_else(|| self.wildcards.get(parent()?));
        found.copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use courser_quic::Identity;

    use super::super::resolver::certified;
    use super::*;

    fn by_name(names: &[&[&str]]) -> ByName {
        let keys = names.iter().map(|names| {
            let identity = Identity::self_signed(names.iter().copied()).expect("random numbers");
            Arc::new(certified(&identity).expect("they match"))
        });
        ByName::new(keys.collect())
    }

    fn index(certificates: &ByName, name: Option<&str>) -> Option<usize> {
        let chosen = certificates.choose(name)?;
        certificates
            .all()
            .iter()
            .position(|it| Arc::ptr_eq(it, chosen))
    }

    #[test]
    fn exact_names_precede_wildcards_and_wildcards_precede_the_default() {
        let certificates = by_name(&[&["a.test"], &["*.b.test"], &["www.b.test", "c.test"]]);
        for (name, expected) in [
            ("a.test", 0),
            ("x.b.test", 1),
            ("www.b.test", 2),
            ("C.TEST", 2),
            ("X.B.Test", 1),
            ("b.test", 0),
            ("x.y.b.test", 0),
            ("other.test", 0),
            ("test", 0),
        ] {
            assert_eq!(index(&certificates, Some(name)), Some(expected), "{name}");
        }
        assert_eq!(index(&certificates, None), Some(0));
    }

    #[test]
    fn first_certificate_with_a_name_is_chosen() {
        let certificates = by_name(&[&["a.test"], &["b.test"], &["b.test", "*.b.test"]]);
        assert_eq!(index(&certificates, Some("b.test")), Some(1));
        assert_eq!(index(&certificates, Some("x.b.test")), Some(2));
    }

    #[test]
    fn names_of_a_replaced_certificate_apply() {
        let certificates = by_name(&[&["a.test"], &["b.test"]]);
        let identity = Identity::self_signed(["c.test"]).expect("random numbers");
        let replaced = certificates.with_replaced(1, certified(&identity).expect("they match"));
        assert_eq!(index(&replaced, Some("c.test")), Some(1));
        assert_eq!(index(&replaced, Some("b.test")), Some(0));
    }
}
