//! The origins that a server claims for a connection (RFC 9412).

/// The claims of a server; `None` until it has sent an ORIGIN frame.
#[derive(Debug, Default)]
pub(super) struct Origins(Option<Vec<String>>);

impl Origins {
    /// Adds the origins of an ORIGIN frame, within the limit.
    pub(super) fn add(&mut self, more: Vec<String>) {
        let known = self.0.get_or_insert_default();
        for origin in more {
            let is_short = origin.len() <= LONGEST_ORIGIN;
            if known.len() < MAX_ORIGINS && is_short && !known.contains(&origin) {
                known.push(origin);
            }
        }
    }

    /// Returns the claims, or `None` until the server has sent an ORIGIN frame.
    pub(super) fn get(&self) -> Option<Vec<String>> {
        self.0.clone()
    }
}

/// Largest number of origins of a connection (limit K204). Certificates rarely have more names.
const MAX_ORIGINS: usize = 256;
/// Longest origin in bytes (limit K204): a scheme, a DNS name and a port.
const LONGEST_ORIGIN: usize = 270;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8336 §2.3: later frames add to the set.
    #[test]
    fn frames_add_origins_once() {
        let mut origins = Origins::default();
        assert_eq!(origins.get(), None);
        origins.add(Vec::new());
        assert_eq!(origins.get(), Some(Vec::new()));
        origins.add(vec!["https://a.test".to_owned()]);
        origins.add(vec![
            "https://a.test".to_owned(),
            "https://b.test".to_owned(),
        ]);
        let expected = ["https://a.test", "https://b.test"].map(str::to_owned);
        assert_eq!(origins.get(), Some(expected.to_vec()));
    }

    /// K204, A123: the number and the length of claims are limited.
    #[test]
    fn claims_are_bounded() {
        let mut origins = Origins::default();
        origins.add(
            (0..1000)
                .map(|number| format!("https://{number}.test"))
                .collect(),
        );
        assert_eq!(origins.get().map(|origins| origins.len()), Some(256));
        for (count, kept) in [(256, 256), (257, 256)] {
            let mut origins = Origins::default();
            let names = (0..count).map(|number| format!("https://{number}.test"));
            origins.add(names.collect());
            assert_eq!(origins.get().map(|it| it.len()), Some(kept), "{count}");
        }
        let mut origins = Origins::default();
        origins.add(vec!["a".repeat(271), "a".repeat(270)]);
        assert_eq!(origins.get(), Some(vec!["a".repeat(270)]));
    }
}
