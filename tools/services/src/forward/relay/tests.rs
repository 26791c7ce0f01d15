use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;

type Running = JoinHandle<End>;

/// Starts a tunnel between two pipes of `size` bytes, and returns the outer ends and the bytes that have passed.
fn tunnel(size: usize) -> (DuplexStream, DuplexStream, Running, Arc<[AtomicU64; 2]>) {
    let (client, near) = duplex(size);
    let (far, target) = duplex(size);
    let bytes: Arc<[AtomicU64; 2]> = Arc::default();
    let counted = bytes.clone();
    let running = tokio::spawn(async move {
        let mut relay = Relay::new(near, far, Duration::from_secs(600));
        let count = |to_target, to_client| {
            counted[0].fetch_add(to_target, Relaxed);
            counted[1].fetch_add(to_client, Relaxed);
        };
        relay.run(count).await
    });
    (client, target, running, bytes)
}

#[tokio::test]
async fn end_of_one_direction_leaves_the_other_open() {
    let (mut client, mut target, running, bytes) = tunnel(64);
    client.write_all(b"request").await.expect("open");
    client.shutdown().await.expect("open");
    let mut request = Vec::new();
    target.read_to_end(&mut request).await.expect("an end");
    assert_eq!(request, b"request");
    let sent = [7; 100_000];
    let writing = async {
        target.write_all(&sent).await.expect("open");
        target.shutdown().await.expect("open");
    };
    let mut answer = Vec::new();
    let (read, ()) = tokio::join!(client.read_to_end(&mut answer), writing);
    assert_eq!(read.expect("an end"), sent.len());
    assert_eq!(running.await.expect("no panic"), End::Finished);
    assert_eq!(bytes[0].load(Relaxed), 7);
    assert_eq!(bytes[1].load(Relaxed), 100_000);
}

/// Limit K646.
#[tokio::test(start_paused = true)]
async fn idle_tunnel_ends_after_its_time() {
    let (mut client, mut target, running, _) = tunnel(64);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(590)).await;
        target.write_all(b"x").await.expect("open");
        assert_eq!(client.read_u8().await.expect("open"), b'x');
    }
    let began = Instant::now();
    assert_eq!(running.await.expect("no panic"), End::Idle);
    assert_eq!(began.elapsed().as_secs(), 600);
}

/// Limit K649, attack A379: an end that does not read holds back the other.
#[tokio::test(start_paused = true)]
async fn tunnel_keeps_no_more_than_its_buffer() {
    let (mut client, target, running, bytes) = tunnel(1024);
    let mut written = 0;
    while let Ok(result) =
        tokio::time::timeout(Duration::from_secs(1), client.write(&[1; 1024])).await
    {
        written += result.expect("open") as u64;
    }
    assert!(written <= 2 * 1024 + SIZE as u64, "{written}");
    assert!(bytes[0].load(Relaxed) <= 1024 + SIZE as u64);
    drop(target);
    assert_eq!(running.await.expect("no panic"), End::Target);
}

/// A stream that fails when it is read.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn side_that_fails_is_named() {
    let idle = Duration::from_secs(600);
    let (_client, near) = duplex(64);
    let end = Relay::new(near, Broken, idle).run(|_, _| {}).await;
    assert_eq!(end, End::Target);
    let (far, _target) = duplex(64);
    let end = Relay::new(Broken, far, idle).run(|_, _| {}).await;
    assert_eq!(end, End::Client);
}
