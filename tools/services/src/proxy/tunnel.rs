//! Tunnels through the proxy, such as WebSockets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::observed::{Observe, Observed};

/// Counts of the tunnels of a proxy, and their time limit.
#[derive(Debug)]
pub(super) struct Tunnels {
    longest_idle: Duration,
    open: AtomicUsize,
    closed_idle: AtomicU64,
}

impl Tunnels {
    pub(super) fn new(longest_idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            longest_idle,
            open: AtomicUsize::new(0),
            closed_idle: AtomicU64::new(0),
        })
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub(super) fn closed_idle(&self) -> u64 {
        self.closed_idle.load(Relaxed)
    }

    /// Forwards bytes in both directions until both ends have finished or the tunnel is idle for too long.
    ///
    /// When one end closes or fails, the other one receives the remaining bytes and is closed (RFC 6455 §7.1.1).
    /// It then has a short time to close as well.
    pub(super) async fn join(
        self: Arc<Self>,
        client: OnUpgrade,
        upstream: OnUpgrade,
        lease: impl Send,
    ) {
        let _open = Open::begin(&self);
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else {
            return;
        };
        self.forward(TokioIo::new(client), TokioIo::new(upstream))
            .await;
        drop(lease);
    }

    async fn forward(
        &self,
        client: impl AsyncRead + AsyncWrite + Unpin,
        upstream: impl AsyncRead + AsyncWrite + Unpin,
    ) {
        let activity = Activity::begin();
        let mut client = Observed::new(client, Watch::new(&activity));
        let mut upstream = Observed::new(upstream, Watch::new(&activity));
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => {}
            () = activity.idle(self.longest_idle) => {
                if activity.ends() == 0 {
                    self.closed_idle.fetch_add(1, Relaxed);
                }
            }
        }
    }
}

struct Open<'a>(&'a Tunnels);

impl<'a> Open<'a> {
    fn begin(tunnels: &'a Tunnels) -> Self {
        tunnels.open.fetch_add(1, Relaxed);
        Self(tunnels)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// The time at which bytes were last forwarded, and the number of ends that have closed.
struct Activity {
    began: Instant,
    /// Milliseconds from `began`.
    last: AtomicU64,
    ends: AtomicUsize,
}

impl Activity {
    fn begin() -> Self {
        Self {
            began: Instant::now(),
            last: AtomicU64::new(0),
            ends: AtomicUsize::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn on_bytes(&self) {
        self.last.store(self.now(), Relaxed);
    }

    fn on_end(&self) {
        self.on_bytes();
        self.ends.fetch_add(1, Release);
    }

    fn ends(&self) -> usize {
        self.ends.load(Acquire)
    }

    /// Completes when no bytes were forwarded for this long, or for [`LINGER`] after one end has closed.
    async fn idle(&self, longest: Duration) {
        loop {
            let longest = match self.ends() {
                0 => longest,
                _ => longest.min(LINGER),
            };
            let since = Duration::from_millis(self.last.load(Relaxed));
            let until = since.saturating_add(longest);
            let elapsed = self.began.elapsed();
            if elapsed >= until {
                return;
            }
            // An end that closes shortens the time.
            tokio::time::sleep((until - elapsed).min(LINGER)).await;
        }
    }
}

/// Observes one end of a tunnel. A failure to read is an end like a close, so that the other end gets all bytes before
/// it.
struct Watch<'a> {
    activity: &'a Activity,
    has_ended: bool,
}

impl<'a> Watch<'a> {
    const fn new(activity: &'a Activity) -> Self {
        Self {
            activity,
            has_ended: false,
        }
    }
}

impl Observe for Watch<'_> {
    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn on_read(&mut self, received: &[u8], result: io::Result<()>) -> io::Result<()> {
        if result.is_ok() && !received.is_empty() {
            self.activity.on_bytes();
        } else {
            self.has_ended = true;
            self.activity.on_end();
        }
        Ok(())
    }
}

/// Time limit for pauses after one end has closed (limit K357).
const LINGER: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// Starts a tunnel between two pipes, and returns the outer ends.
    fn tunnel(tunnels: &Arc<Tunnels>) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<()>) {
        let (client, near) = duplex(64);
        let (far, upstream) = duplex(64);
        let tunnels = tunnels.clone();
        let joined = tokio::spawn(async move { tunnels.forward(near, far).await });
        (client, upstream, joined)
    }

    #[tokio::test(start_paused = true)]
    async fn idle_tunnel_is_closed() {
        let tunnels = Tunnels::new(Duration::from_secs(3600));
        let (mut client, mut upstream, joined) = tunnel(&tunnels);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(3500)).await;
            upstream.write_all(b"x").await.expect("open");
            assert_eq!(client.read_u8().await.expect("open"), b'x');
        }
        let began = Instant::now();
        joined.await.expect("no panic");
        assert_eq!(began.elapsed().as_secs().div_ceil(100), 36);
        assert_eq!(tunnels.closed_idle(), 1);
        assert!(client.read_u8().await.is_err());
    }

    /// RFC 6455 §7.1.1.
    #[tokio::test(start_paused = true)]
    async fn end_that_closes_closes_the_other_after_the_remaining_bytes() {
        let tunnels = Tunnels::new(Duration::from_secs(3600));
        let (mut client, mut upstream, joined) = tunnel(&tunnels);
        upstream.write_all(&[7; 60]).await.expect("open");
        upstream.shutdown().await.expect("open");
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.expect("an end");
        assert_eq!(received, [7; 60]);
        // The client does not close.
        let began = Instant::now();
        joined.await.expect("no panic");
        assert_eq!(began.elapsed().as_secs(), 30);
        assert_eq!(tunnels.closed_idle(), 0);
    }
}
