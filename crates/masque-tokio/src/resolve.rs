//! Names of targets.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser_base::Mutex;
use courser_masque::ProxyError;
use courser_quic::runtime;
use tokio::sync::Semaphore;

use crate::clients::Client;

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

/// Names that are resolved at the same time. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Lookups {
    all: Arc<Semaphore>,
    by_client: Arc<Mutex<ByClient>>,
}

/// The lookups of each client that has some.
#[derive(Debug, Default)]
struct ByClient {
    semaphores: HashMap<Client, Arc<Semaphore>>,
    /// The number of clients at which those without lookups are removed.
    most: usize,
}

impl Default for Lookups {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_A_TIME)),
            by_client: Arc::default(),
        }
    }
}

impl Lookups {
    /// Resolves a name of a client within a time, which includes waiting for other names. `None` is a client without a
    /// name. An error has its reason for logs.
    pub(crate) async fn resolve(
        &self,
        client: Option<&Client>,
        resolver: &Resolver,
        (name, port): (&str, u16),
        time: Duration,
    ) -> Result<Vec<SocketAddr>, (ProxyError, String)> {
        let failed = |error, reason: &dyn std::fmt::Display| {
            Err((error, format!("{name} is not resolved: {reason}")))
        };
        let owned = name.to_owned();
        let own = client.map(|client| self.by_client.lock().of(client));
        let (all, resolver) = (self.all.clone(), resolver.clone());
        let answer = runtime::timeout(time, async move {
            // First the own one: whoever waits for it takes nothing from others.
            let own = match own {
                Some(own) => Some(own.acquire_owned().await),
                None => None,
            };
            let permit = all.acquire_owned().await;
            // A thread of the system that hangs holds its permits for as long.
            let lookup = async move {
                let _permits = (own, permit);
                resolver(owned, port).await
            };
            runtime::spawn(lookup).await
        });
        match answer.await {
            Ok(Ok(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
            Ok(Ok(Ok(_))) => failed(ProxyError::DnsError, &"it has no address"),
            Ok(Ok(Err(error))) => failed(ProxyError::DnsError, &error),
            Ok(Err(_)) => failed(ProxyError::DnsError, &"the resolver has panicked"),
            Err(_) => {
                let seconds = time.as_secs_f64();
                let reason = format!("no answer within {seconds} s");
                failed(ProxyError::DnsTimeout, &reason)
            }
        }
    }
}

impl ByClient {
    /// Returns the lookups of a client.
    fn of(&mut self, client: &Client) -> Arc<Semaphore> {
        if self.semaphores.len() >= self.most {
            // Others are in use by lookups, and by requests that wait for theirs.
            self.semaphores
                .retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            self.most = AT_A_TIME.max(2 * self.semaphores.len());
        }
        let semaphore = self.semaphores.entry(client.clone());
        semaphore
            .or_insert_with(|| Arc::new(Semaphore::new(OF_CLIENT)))
            .clone()
    }
}

/// Names that are resolved at a time (limit K624): the system uses a thread for each.
const AT_A_TIME: usize = 64;
/// Those of one client (limit K624): a name server that does not answer stops the names of its client only.
const OF_CLIENT: usize = 16;

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
                let name = ("a.example", 1);
                tokio::spawn(async move { lookups.resolve(None, &resolver, name, time).await })
            });
            for lookup in all.collect::<Vec<_>>() {
                let (error, reason) = lookup.await.expect("no panic").expect_err("it hangs");
                assert_eq!(error, ProxyError::DnsTimeout);
                assert_eq!(reason, "a.example is not resolved: no answer within 0.02 s");
            }
        }
        assert_eq!(begun.load(Relaxed), AT_A_TIME);
    }

    #[tokio::test]
    async fn clients_without_lookups_take_no_memory() {
        let target: SocketAddr = ([192, 0, 2, 1], 1).into();
        let resolver: Resolver = Arc::new(move |_, _| Box::pin(async move { Ok(vec![target]) }));
        let lookups = Lookups::default();
        for number in 0..1000 {
            let client = Client::new(&number.to_string());
            let time = Duration::from_secs(5);
            let answer = lookups.resolve(Some(&client), &resolver, ("a.example", 1), time);
            assert_eq!(answer.await, Ok(vec![target]));
        }
        assert!(lookups.by_client.lock().semaphores.len() <= AT_A_TIME);
    }
}
