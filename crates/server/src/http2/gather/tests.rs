use std::task::Waker;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::exchange::marks::Marks;

/// A stream that accepts a limited number of bytes at once, and counts the calls.
#[derive(Default)]
struct Narrow {
    taken: Vec<u8>,
    calls: usize,
    room: usize,
    is_broken: bool,
}

impl AsyncWrite for Narrow {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_broken {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let len = bytes.len().min(self.room);
        if len == 0 {
            return Poll::Pending;
        }
        self.calls += 1;
        self.room -= len;
        self.taken.extend_from_slice(&bytes[..len]);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Narrow {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

fn inspector() -> Inspector {
    Inspector::new(Marks::default(), 65_536)
}

fn narrow(room: usize) -> (Gathered<Narrow>, Gatherer<Narrow>) {
    let stream = Narrow {
        room,
        ..Narrow::default()
    };
    gather(
        stream,
        Executor::default(),
        HeldContent::default(),
        Refusing::default(),
        inspector(),
    )
}

#[tokio::test]
async fn flushed_writes_are_sent_together() {
    let (mut stream, gatherer) = narrow(usize::MAX);
    for _ in 0..25 {
        stream.write_all(&[7; 1000]).await.expect("kept");
        stream.flush().await.expect("kept");
    }
    assert_eq!(lock(&gatherer.0).stream.calls, 0);
    gatherer.poll_send(&mut Context::from_waker(Waker::noop()));
    let state = lock(&gatherer.0);
    assert_eq!((state.stream.calls, state.stream.taken.len()), (1, 25_000));
    assert_eq!(state.kept.capacity(), 0, "memory is given back");
}

/// K320: GOAWAY reports the reason for the close, unless another frame is incomplete.
#[tokio::test(start_paused = true)]
async fn exhausted_budget_ends_the_connection_with_goaway() {
    for cut in [0, 5] {
        let (mut mine, theirs) = tokio::io::duplex(1 << 20);
        let (mut stream, gatherer) = gather(
            theirs,
            Executor::default(),
            HeldContent::default(),
            Refusing::default(),
            inspector(),
        );
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // A request on stream 5 and PING frames.
        bytes.extend([0, 0, 3, 1, 5, 0, 0, 0, 5, 0x82, 0x87, 0x84]);
        bytes.extend([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(600));
        mine.write_all(&bytes).await.expect("the pipe has capacity");
        let ack = [0, 0, 0, 4, 1, 0, 0, 0, 0];
        stream.write_all(&ack[cut..]).await.expect("kept");
        let mut read = Vec::new();
        let error = stream.read_to_end(&mut read).await.expect_err("exhausted");
        assert_eq!(error.kind(), io::ErrorKind::Other);
        gatherer.close_if_exhausted().await;
        let mut seen = Vec::new();
        mine.read_to_end(&mut seen).await.expect("closed");
        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 11];
        let expected = match cut {
            0 => [&ack[..], &goaway].concat(),
            _ => ack[cut..].to_vec(),
        };
        assert_eq!(seen, expected);
    }
}

/// K320: bytes that arrive after many cancelled requests are read later, and none is lost.
#[tokio::test(start_paused = true)]
async fn clients_that_cancel_too_much_are_read_more_slowly() {
    let (mut mine, theirs) = tokio::io::duplex(1 << 20);
    let (mut stream, _gatherer) = gather(
        theirs,
        Executor::default(),
        HeldContent::default(),
        Refusing::default(),
        inspector(),
    );
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for number in 0..1020_u32 {
        let stream = (2 * number + 1).to_be_bytes();
        bytes.extend([&[0, 0, 3, 1, 5][..], &stream, &[0x82, 0x87, 0x84]].concat());
        bytes.extend([&[0, 0, 4, 3, 0][..], &stream, &[0, 0, 0, 8]].concat());
    }
    mine.write_all(&bytes).await.expect("the pipe has capacity");
    let began = tokio::time::Instant::now();
    let mut read = vec![0; bytes.len()];
    stream.read_exact(&mut read).await.expect("open");
    assert!(read == bytes && began.elapsed() < std::time::Duration::from_millis(1));
    let settings = [0, 0, 0, 4, 1, 0, 0, 0, 0];
    let written = mine.write_all(&settings).await;
    written.expect("the pipe has capacity");
    stream.read_exact(&mut [0; 9]).await.expect("open");
    // 20 requests beyond 1000 cause a pause of 5 ms each.
    assert!(began.elapsed() >= std::time::Duration::from_millis(100));
}

/// Writes up to the limit and one byte more.
#[test]
fn buffered_bytes_are_limited() {
    let (mut stream, gatherer) = narrow(0);
    let mut cx = Context::from_waker(Waker::noop());
    let all = vec![7; MAX_GATHERED + 1];
    let written = Pin::new(&mut stream).poll_write(&mut cx, &all);
    assert!(
        matches!(written, Poll::Ready(Ok(MAX_GATHERED))),
        "{written:?}"
    );
    let more = Pin::new(&mut stream).poll_write(&mut cx, &all[..1]);
    assert!(more.is_pending(), "{more:?}");
    gatherer.poll_send(&mut cx);
    lock(&gatherer.0).stream.room = MAX_GATHERED + 1;
    gatherer.poll_send(&mut cx);
    let more = Pin::new(&mut stream).poll_write(&mut cx, &all[..1]);
    assert!(matches!(more, Poll::Ready(Ok(1))), "{more:?}");
    gatherer.poll_send(&mut cx);
    assert_eq!(lock(&gatherer.0).stream.taken, all);
}

#[tokio::test]
async fn shutdown_sends_the_buffered_bytes() {
    let (mut stream, gatherer) = narrow(usize::MAX);
    stream.write_all(b"last words").await.expect("kept");
    stream.shutdown().await.expect("sent");
    assert_eq!(lock(&gatherer.0).stream.taken, b"last words");
}

#[tokio::test]
async fn connection_receives_errors() {
    let (mut stream, gatherer) = narrow(usize::MAX);
    stream.write_all(b"lost").await.expect("kept");
    lock(&gatherer.0).stream.is_broken = true;
    gatherer.poll_send(&mut Context::from_waker(Waker::noop()));
    let error = stream.read(&mut [0]).await.expect_err("broken");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn nothing_is_read_until_other_tasks_have_run() {
    use hyper::rt::Executor as _;

    let (mine, mut theirs) = tokio::io::duplex(64);
    let executor = Executor::default();
    let (mut stream, _gatherer) = gather(
        mine,
        executor.clone(),
        HeldContent::default(),
        Refusing::default(),
        inspector(),
    );
    theirs.write_all(b"request").await.expect("open");
    while !executor.needs_pause() {
        executor.execute(async {});
    }
    let mut content = [0; 7];
    let mut buffer = ReadBuf::new(&mut content);
    let mut cx = Context::from_waker(Waker::noop());
    let read = Pin::new(&mut stream).poll_read(&mut cx, &mut buffer);
    assert!(read.is_pending(), "{read:?}");
    executor.pause();
    let read = stream.read(&mut content).await.expect("open");
    assert_eq!(&content[..read], b"request");
}
