//! The addresses of a target.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use courser_masque::request::Refusal;
use courser_masque::{Policy, ProxyError};

use crate::connect::judge;

/// The allowed addresses of a target, from [`Gate::candidates`](crate::Gate::candidates). Each is judged when it is asked
/// for, since that takes some calls of the system and the first one is often enough. Families take turns, beginning with
/// that of the first address (RFC 8305 §4).
pub struct Candidates {
    policy: Arc<Policy>,
    /// The name of the proxy in refusals.
    proxy: Arc<str>,
    name: Option<String>,
    addresses: std::vec::IntoIter<SocketAddr>,
    /// The reason why the last address that was refused is not allowed.
    failure: (ProxyError, String),
}

impl fmt::Debug for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidates")
            .field("name", &self.name)
            .field("addresses", &self.addresses.as_slice())
            .finish_non_exhaustive()
    }
}

impl Candidates {
    pub(crate) fn new(
        policy: Arc<Policy>,
        proxy: Arc<str>,
        name: Option<String>,
        addresses: Vec<SocketAddr>,
    ) -> Self {
        Self {
            policy,
            proxy,
            name,
            addresses: interleaved(addresses).into_iter(),
            failure: (ProxyError::DnsError, "the name has no address".to_owned()),
        }
    }

    /// Returns the refusal for a client, if no address was allowed.
    pub fn refusal(&self) -> Refusal {
        let (error, reason) = &self.failure;
        error.refusal(&self.proxy, reason)
    }
}

impl Iterator for Candidates {
    type Item = SocketAddr;

    fn next(&mut self) -> Option<SocketAddr> {
        for address in self.addresses.by_ref() {
            match judge(&self.policy, self.name.as_deref(), address) {
                Ok(allowed) => return Some(allowed),
                Err(failure) => self.failure = failure,
            }
        }
        None
    }
}

/// Returns the addresses with both families in turn, beginning with the family of the first.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v4_first = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv4() == is_v4_first);
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let before = all.len();
        all.extend(first.next());
        all.extend(second.next());
        if all.len() == before {
            return all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|it| it.parse().expect("an address"))
            .collect()
    }

    #[test]
    fn families_take_turns() {
        let all = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let expected = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(interleaved(all), expected);
        assert!(interleaved(Vec::new()).is_empty());
    }

    #[test]
    fn addresses_that_are_prohibited_are_left_out_with_their_reason() {
        let policy = Policy::nothing().allow("127.0.0.2".parse().expect("a prefix"), 0..=65_535);
        let all = addresses(&["10.0.0.1:1", "127.0.0.2:1", "10.0.0.2:1"]);
        let new = |policy, all| Candidates::new(Arc::new(policy), "test".into(), None, all);
        let mut candidates = new(policy, all);
        assert_eq!(candidates.next(), addresses(&["127.0.0.2:1"]).pop());
        assert_eq!(candidates.next(), None);
        let refusal = candidates.refusal();
        assert_eq!(refusal.status, http::StatusCode::FORBIDDEN);
        assert!(refusal.reason.contains("10.0.0.2"), "{}", refusal.reason);
        let none = new(Policy::nothing(), Vec::new());
        assert!(none.refusal().reason.contains("no address"));
    }
}
