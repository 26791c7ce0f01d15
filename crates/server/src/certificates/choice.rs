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

    /// Returns the certificate for clients that ask for `name`. `None` refuses the client.
    pub(crate) async fn of(&self, name: Option<String>) -> Option<Arc<CertifiedKey>> {
        (self.0)(name).await
    }

    /// Returns a resolver that waits for the function up to `limit`, on threads that may block.
    pub(crate) fn waiting(self, limit: Duration) -> Arc<dyn ResolvesServerCert> {
        Arc::new(Waiting {
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

/// Waits for a choice during a handshake.
#[derive(Debug)]
struct Waiting {
    choice: Choice,
    limit: Duration,
}

impl ResolvesServerCert for Waiting {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_owned);
        runtime::block_on(async {
            let chosen = tokio::time::timeout(self.limit, self.choice.of(name));
            // A client that is refused frees the thread for others.
            chosen.await.ok().flatten()
        })
    }
}
