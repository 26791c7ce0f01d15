//! Names of targets.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser_masque::ProxyError;
use courser_quic::runtime;
use tokio::sync::Semaphore;

/// The addresses of a name, as a future.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Resolves a name and adds the port to its addresses.
pub(crate) type Resolver = Arc<dyn Fn(String, u16) -> Resolving + Send + Sync>;

/// Returns the resolver of the system, which needs tokio.
pub(crate) fn system() -> Resolver {
    Arc::new(|name, port| {
        Box::pin(async move {
            Ok(tokio::net::lookup_host((name.as_str(), port))
                .await?
                .collect())
        })
    })
}

/// Names that are resolved at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Lookups(Arc<Semaphore>);

impl Default for Lookups {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

impl Lookups {
    /// Resolves a name within a time, which includes waiting for other names.
    pub(crate) async fn resolve(
        &self,
        resolver: &Resolver,
        name: &str,
        port: u16,
        time: Duration,
    ) -> Result<Vec<SocketAddr>, ProxyError> {
        let name = name.to_owned();
        let (semaphore, resolver) = (self.0.clone(), resolver.clone());
        let answer = runtime::timeout(time, async move {
            let permit = semaphore.acquire_owned().await;
            // A thread of the system that hangs holds its permit for as long.
            let lookup = async move {
                let _permit = permit;
                resolver(name, port).await
            };
            runtime::spawn(lookup).await
        });
        match answer.await {
            Ok(Ok(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(ProxyError::DnsError),
            Err(_) => Err(ProxyError::DnsTimeout),
        }
    }
}

/// Names that are resolved at a time (limit K624): the system uses a thread for each.
const AT_A_TIME: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// Limit K624: lookups that hang hold their permits after the request has given up.
    #[tokio::test]
    async fn names_beyond_the_limit_wait() {
        let begun = Arc::new(AtomicUsize::new(0));
        let count = begun.clone();
        let resolver: Resolver = Arc::new(move |_, _| {
            count.fetch_add(1, Relaxed);
            Box::pin(std::future::pending())
        });
        let lookups = Lookups::default();
        let time = Duration::from_millis(20);
        for _ in 0..2 {
            let all = (0..AT_A_TIME).map(|_| {
                let (lookups, resolver) = (lookups.clone(), resolver.clone());
                tokio::spawn(async move { lookups.resolve(&resolver, "a.example", 1, time).await })
            });
            for lookup in all.collect::<Vec<_>>() {
                assert_eq!(lookup.await.expect("no panic"), Err(ProxyError::DnsTimeout));
            }
        }
        assert_eq!(begun.load(Relaxed), AT_A_TIME);
    }
}
