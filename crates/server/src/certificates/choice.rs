//! The choice of certificates by an async function.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser_quic::runtime;
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;

type Choosing = Pin<Box<dyn Future<Output = Option<Arc<CertifiedKey>>> + Send>>;

/// Chooses the certificate of each handshake with an async function.
#[derive(Clone)]
pub(crate) struct Choice(Arc<dyn Fn(Option<String>) -> Choosing + Send + Sync>);

impl Choice {
    pub(super) fn new<F, R>(choose: F) -> Self
    where
        F: Fn(Option<String>) -> R + Send + Sync + 'static,
        R: Future<Output = Option<Arc<CertifiedKey>>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(choose(name))))
    }

    /// Returns the certificate for clients that request `name`, or `None` to refuse the client.
    pub(crate) async fn of(&self, name: Option<String>) -> Option<Arc<CertifiedKey>> {
        (self.0)(name).await
    }

    /// Returns a resolver that blocks its thread until the function completes, at most for `limit`.
    pub(crate) fn blocking(self, limit: Duration) -> Arc<dyn ResolvesServerCert> {
        Arc::new(BlockingChoice {
            choice: self,
            limit,
        })
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choice")
    }
}

/// Blocks during a handshake until the certificate is chosen.
#[derive(Debug)]
struct BlockingChoice {
    choice: Choice,
    limit: Duration,
}

impl ResolvesServerCert for BlockingChoice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_owned);
        runtime::block_on(async {
            let chosen = tokio::time::timeout(self.limit, self.choice.of(name));
            // Dropped at the limit, so that the thread becomes free.
            chosen.await.ok().flatten()
        })
    }
}
