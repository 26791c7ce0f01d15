//! The origins that a connection serves (RFC 8336 §2.3).

use courser_base::Mutex;
use http::Uri;

use super::origin::Origin;

/// The origins that a connection serves.
#[derive(Debug)]
pub(super) struct Serves {
    /// The origin for which the connection was opened, which is always in the set (RFC 8336 §2.3).
    first: Origin,
    /// Origins that the server claimed but for which it responded with 421. Their number is bounded by the
    /// number of claims (limit K204).
    misdirected: Mutex<Vec<Origin>>,
}

impl Serves {
    pub(super) fn of(first: Origin) -> Self {
        Self {
            first,
            misdirected: Mutex::default(),
        }
    }

    /// Returns true if the connection was opened for another origin.
    pub(super) fn is_other(&self, origin: &Origin) -> bool {
        self.first != *origin
    }

    /// Removes an origin from the set after the server responded with 421 (RFC 8336 §2.3).
    pub(super) fn on_misdirected(&self, origin: &Origin) {
        let mut misdirected = self.misdirected.lock();
        if !misdirected.contains(origin) {
            misdirected.push(origin.clone());
        }
    }

    /// Returns true if the server has responded to a request for the origin with 421.
    pub(super) fn is_misdirected(&self, origin: &Origin) -> bool {
        self.misdirected.lock().contains(origin)
    }
}

/// Returns true if `claim` is the serialization of `origin` (RFC 6454 §6.2). Other claims, such as wildcards,
/// are ignored.
pub(super) fn is_claim_of(claim: &str, origin: &Origin) -> bool {
    let Ok(uri) = claim.parse::<Uri>() else {
        return false;
    };
    let is_bare = !claim.ends_with('/') && uri.path() == "/" && uri.query().is_none();
    is_bare && !claim.contains('@') && Origin::of(&uri).is_ok_and(|claimed| claimed == *origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_serializations_of_origins() {
        let origin = Origin::https("a.test", 443);
        for claim in ["https://a.test", "https://A.test", "https://a.test:443"] {
            assert!(is_claim_of(claim, &origin), "{claim}");
        }
        for claim in [
            "https://b.test",
            "https://a.test:444",
            "http://a.test",
            "https://a.test/",
            "https://a.test/x",
            "https://a.test?x",
            "https://x@a.test",
            "https://*.test",
            "a.test",
            "a.test:443",
            "",
            "null",
        ] {
            assert!(!is_claim_of(claim, &origin), "{claim}");
        }
        assert!(is_claim_of(
            "https://a.test:8443",
            &Origin::https("a.test", 8443)
        ));
    }

    #[test]
    fn origins_that_were_misdirected_are_remembered_once() {
        let serves = Serves::of(Origin::https("a.test", 443));
        let other = Origin::https("b.test", 443);
        assert!(serves.is_other(&other) && !serves.is_misdirected(&other));
        serves.on_misdirected(&other);
        serves.on_misdirected(&other);
        assert!(serves.is_misdirected(&other));
        assert_eq!(serves.misdirected.lock().len(), 1);
    }
}
