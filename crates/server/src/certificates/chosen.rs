//! TCP handshakes whose certificate is chosen by an async function, and whose key may be slow.

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
    permits: Arc<Semaphore>,
}

impl Chooser {
    pub(crate) fn new(choice: Choice) -> Self {
        Self {
            choice,
            permits: Arc::new(Semaphore::new(MAX_BLOCKING)),
        }
    }

    /// Completes a handshake with the configuration `tls` and the chosen certificate.
    ///
    /// # Errors
    /// No certificate was chosen, TLS or the socket failed, or the key panicked.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the handshake, after a signature in progress.
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
        // The key usually signs in this step, but after a second ClientHello (RFC 8446 §4.1.4) in `poll` below.
        let mut accept = self.run(move || start.into_stream(config)).await?;
        let socket_waker = Arc::new(SocketWaker::default());
        loop {
            let waker = Waker::from(socket_waker.clone());
            let poll = move || {
                let polled = Pin::new(&mut accept).poll(&mut Context::from_waker(&waker));
                (accept, polled)
            };
            let (rest, polled) = self.run(poll).await?;
            if let Poll::Ready(result) = polled {
                return result;
            }
            accept = rest;
            // No thread is occupied while the client is awaited.
            socket_waker.0.notified().await;
        }
    }

    /// Runs `work` on a thread that may block, as soon as fewer than [`MAX_BLOCKING`] are in use.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let permit = self.permits.clone().acquire_owned().await;
        let working = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if the handshake is aborted before.
            let _turn = permit;
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

/// Wakes the task that waits for the socket. A wakeup before the wait is remembered.
#[derive(Default)]
struct SocketWaker(Notify);

impl Wake for SocketWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Largest number of steps of TCP handshakes that run on blocking threads (limit K275): the same as over QUIC,
/// and a quarter of tokio's threads.
const MAX_BLOCKING: usize = 128;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Condvar, Mutex};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn blocking_steps_are_limited_and_further_ones_wait() {
        let certificates = crate::Certificates::asynchronous(|_| async { None });
        let choice = certificates
            .resolver
            .choice()
            .expect("an asynchronous choice")
            .clone();
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
        // An aborted step occupies its thread until it ends.
        steps.abort_all();
        tokio::task::yield_now().await;
        assert_eq!(chooser.permits.available_permits(), 0);
        *gate.0.lock().expect("no panic") = true;
        gate.1.notify_all();
        while steps.join_next().await.is_some() {}
        while chooser.permits.available_permits() < MAX_BLOCKING {
            tokio::task::yield_now().await;
        }
        assert_eq!(most.load(SeqCst), MAX_BLOCKING);
    }
}
