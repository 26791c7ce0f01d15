//! The function of the user that changes DNS records.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A TXT record that proves control of a name (RFC 8555 §8.4).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DnsRecord {
    /// The name of the record with a dot at its end, such as `_acme-challenge.example.org.`.
    pub name: String,
    /// The text, 43 characters of base64url.
    pub value: String,
}

/// A change of DNS records that an ACME client requires; see [`Acme::dns01`](super::Acme::dns01).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DnsChange {
    /// Add this record. Others with the same name must stay: a certificate for a name and its wildcard needs two.
    Add(DnsRecord),
    /// Remove this record.
    Remove(DnsRecord),
}

/// The function that changes DNS records.
#[derive(Clone)]
pub(super) struct DnsHook(Arc<Change>);

type Change =
    dyn Fn(DnsChange) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync;

impl DnsHook {
    pub(super) fn new<F, R>(change: F) -> Self
    where
        F: Fn(DnsChange) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self(Arc::new(move |it| Box::pin(change(it))))
    }

    pub(super) async fn change(&self, change: DnsChange) -> Result<(), String> {
        match tokio::time::timeout(HOOK_TIMEOUT, (self.0)(change)).await {
            Ok(result) => result,
            Err(_) => Err(format!(
                "it did not end within {} s",
                HOOK_TIMEOUT.as_secs()
            )),
        }
    }
}

impl fmt::Debug for DnsHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DnsHook")
    }
}

/// Time limit for a change of DNS records (limit K400).
const HOOK_TIMEOUT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn function_that_never_ends_is_a_failure() {
        let hook = DnsHook::new(|_| std::future::pending());
        let record = DnsRecord {
            name: "_acme-challenge.a.test.".to_owned(),
            value: "x".to_owned(),
        };
        let began = tokio::time::Instant::now();
        let result = hook.change(DnsChange::Add(record)).await;
        assert_eq!(began.elapsed(), HOOK_TIMEOUT);
        assert!(result.is_err_and(|text| text.contains("600 s")));
    }
}
