//! Handshakes over TCP whose certificate an async function chooses, and whose key may be slow.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use courser_tls::rustls::ServerConfig;
use courser_tls::rustls::server::{ClientHello, ResolvesServerCert};
use courser_tls::rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore};
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;

use super::choice::Choice;

/// Chooses certificates, and runs TLS on threads that may block.
#[derive(Debug)]
pub(crate) struct Chooser {
    choice: Choice,
    turns: Arc<Semaphore>,
}

impl Chooser {
    pub(crate) fn new(choice: Choice) -> Self {
        Self {
            choice,
            turns: Arc::new(Semaphore::new(MAX_BLOCKING)),
        }
    }

    /// Completes a handshake with the configuration `tls` and the certificate that is chosen.
    ///
    /// # Errors
    /// Returns an error if no certificate was chosen, TLS or the socket fails, or the key panics.
    ///
    /// # Cancel safety
    /// Dropping the future ends the handshake, once a key that is in use has signed.
    pub(crate) async fn accept<IO>(
        &self,
        start: StartHandshake<IO>,
        tls: &ServerConfig,
    ) -> io::Result<TlsStream<IO>>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let name = start.client_hello().server_name().map(str::to_owned);
        let mut config = tls.clone();
        config.cert_resolver = Arc::new(Chosen(self.choice.of(name).await));
        let config = Arc::new(config);
        // The key usually signs here, and after another ClientHello (RFC 8446 §4.1.4) when the rest is polled.
        let mut accept = self.run(move || start.into_stream(config)).await?;
        let bell = Arc::new(Bell::default());
        loop {
            let waker = Waker::from(bell.clone());
            let poll = move || {
                let polled = Pin::new(&mut accept).poll(&mut Context::from_waker(&waker));
                (accept, polled)
            };
            let (rest, polled) = self.run(poll).await?;
            if let Poll::Ready(result) = polled {
                return result;
            }
            accept = rest;
            // No thread is held while the client is awaited.
            bell.0.notified().await;
        }
    }

    /// Runs `work` on a thread that may block, once fewer than [`MAX_BLOCKING`] are in use.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let turn = self.turns.clone().acquire_owned().await;
        let working = tokio::task::spawn_blocking(move || {
            // Held until the work has ended, even if the handshake is given up before.
            let _turn = turn;
            work()
        });
        working.await.map_err(io::Error::other)
    }
}

/// The certificate that was chosen for a connection.
#[derive(Debug)]
struct Chosen(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for Chosen {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

/// Reports progress of the socket. Remembers what happens before it is awaited.
#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// The largest number of steps of handshakes over TCP that run on threads which may block (limit K275). As many
/// as over QUIC, on a quarter of tokio's threads.
const MAX_BLOCKING: usize = 128;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Condvar, Mutex};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn steps_that_block_are_bounded_and_further_ones_wait() {
        let certificates = crate::Certificates::asynchronous(|_| async { None });
        let choice = certificates.resolver.choice().expect("given").clone();
        let chooser = Arc::new(Chooser::new(choice));
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut steps = JoinSet::new();
        for _ in 0..MAX_BLOCKING + 10 {
            let (chooser, gate) = (chooser.clone(), gate.clone());
            let (running, most) = (running.clone(), most.clone());
            let work = move || {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                let open = gate.0.lock().expect("no panic");
                drop(gate.1.wait_while(open, |open| !*open));
                running.fetch_sub(1, SeqCst);
            };
            steps.spawn(async move { chooser.run(work).await });
        }
        while running.load(SeqCst) < MAX_BLOCKING {
            tokio::task::yield_now().await;
        }
        // A step that is given up holds its thread until it ends.
        steps.abort_all();
        tokio::task::yield_now().await;
        assert_eq!(chooser.turns.available_permits(), 0);
        *gate.0.lock().expect("no panic") = true;
        gate.1.notify_all();
        while steps.join_next().await.is_some() {}
        while chooser.turns.available_permits() < MAX_BLOCKING {
            tokio::task::yield_now().await;
        }
        assert_eq!(most.load(SeqCst), MAX_BLOCKING);
    }
}
