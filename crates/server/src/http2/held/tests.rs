use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Wake;

use http_body::Body as _;

use super::*;

/// A body with endless chunks of this size.
struct Endless(usize);

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(vec![7; self.0].into()))))
    }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A response that counts its wakeups.
struct Answer {
    body: Paced<Endless>,
    woken: Arc<Count>,
}

impl Answer {
    fn new(content: &HeldContent, piece: usize) -> Self {
        Self {
            body: content.pace(Endless(piece)),
            woken: Arc::default(),
        }
    }

    /// Returns the next chunk, if it may be polled.
    fn next(&mut self) -> Option<Held<Bytes>> {
        let waker = Waker::from(self.woken.clone());
        let mut cx = Context::from_waker(&waker);
        match Pin::new(&mut self.body).poll_frame(&mut cx) {
            Poll::Pending => None,
            Poll::Ready(frame) => {
                let frame = frame.expect("an unlimited sequence").expect("infallible");
                Some(frame.into_data().unwrap_or_else(|_| panic!("no data")))
            }
        }
    }

    fn woken(&self) -> usize {
        self.woken.0.load(SeqCst)
    }
}

const PIECE: usize = MAX_HELD / 2;

#[test]
fn responses_wait_while_the_connection_holds_the_limit() {
    let content = HeldContent::default();
    content.set_blocked(true);
    let (mut one, mut other) = (Answer::new(&content, PIECE), Answer::new(&content, PIECE));
    let pieces = [
        one.next().expect("a piece within the limit"),
        one.next().expect("a piece within the limit"),
    ];
    assert!(one.next().is_none() && other.next().is_none());
    assert!(other.next().is_none(), "it waits once");
    let [first, second] = pieces;
    drop(first);
    // In the order of their requests, and one for each piece that was sent.
    assert_eq!((one.woken(), other.woken()), (1, 0));
    let third = one.next().expect("a piece within the limit");
    drop(second);
    assert_eq!((one.woken(), other.woken()), (1, 1));
    drop((other.next().expect("a piece within the limit"), third));
    assert_eq!(content.lock().bytes, 0);
}

#[test]
fn streams_that_are_read_later_do_not_block_others() {
    let content = HeldContent::default();
    content.set_blocked(true);
    let mut stuck = Answer::new(&content, PIECE);
    let _pieces = [
        stuck.next().expect("a piece within the limit"),
        stuck.next().expect("a piece within the limit"),
    ];
    let mut other = Answer::new(&content, PIECE);
    assert!(other.next().is_none());
    // The connection has sent all it can, but still holds content, which waits for credit of that stream.
    content.set_blocked(false);
    assert_eq!(other.woken(), 1);
    for _ in 0..3 {
        let piece = other.next().expect("one piece at a time");
        assert!(other.next().is_none(), "another before the first was sent");
        drop(piece);
    }
    assert!(stuck.next().is_none());
}

#[test]
fn response_that_ends_while_permitted_wakes_the_next() {
    let content = HeldContent::default();
    content.set_blocked(true);
    let mut full = Answer::new(&content, MAX_HELD);
    let piece = full.next().expect("a piece within the limit");
    let (mut one, mut other) = (Answer::new(&content, PIECE), Answer::new(&content, PIECE));
    assert!(one.next().is_none() && other.next().is_none());
    drop(piece);
    assert_eq!((one.woken(), other.woken()), (1, 0));
    drop(one);
    assert_eq!(other.woken(), 1);
}

#[test]
fn content_of_an_ended_response_is_still_held() {
    let content = HeldContent::default();
    content.set_blocked(true);
    let mut one = Answer::new(&content, MAX_HELD);
    let piece = one.next().expect("a piece within the limit");
    drop(one);
    let mut other = Answer::new(&content, PIECE);
    assert!(other.next().is_none());
    drop(piece);
    assert_eq!(other.woken(), 1);
    drop(other);
    let state = content.lock();
    assert!(state.responses.is_empty() && state.waiting.is_empty());
}

#[test]
fn small_chunks_are_not_counted() {
    let content = HeldContent::default();
    let mut one = Answer::new(&content, SMALL);
    let _piece = one.next().expect("a piece within the limit");
    assert_eq!(content.lock().bytes, 0);
    assert!(content.lock().responses.is_empty());
}
