use std::task::Waker;

use http_body_util::{Full, StreamBody};

use super::*;

fn next(body: &mut RequestBody) -> Option<Result<Bytes, String>> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(Some(Ok(frame))) => Some(Ok(frame.into_data().expect("data"))),
        Poll::Ready(Some(Err(error))) => Some(Err(error.to_string())),
        Poll::Ready(None) => None,
        Poll::Pending => panic!("all of it is there"),
    }
}

fn pieces(count: usize, size: usize) -> RequestBody {
    let piece = Bytes::from(vec![1; size]);
    let frames = (0..count).map(move |_| Ok::<_, std::io::Error>(Frame::data(piece.clone())));
    RequestBody::new(StreamBody::new(futures_util::stream::iter(frames)))
}

#[test]
fn body_is_sent_again_from_its_beginning() {
    let mut body = pieces(3, 10);
    let replay = body.handle();
    assert!(next(&mut body).is_some());
    assert!(next(&mut body).is_some());
    let mut again = replay.restart().expect("the content was recorded");
    let mut total = 0;
    while let Some(data) = next(&mut again) {
        total += data.expect("data").len();
    }
    assert_eq!(total, 30);
    assert!(again.is_end_stream());
}

#[test]
fn body_of_an_earlier_attempt_does_not_consume_later_frames() {
    let mut body = pieces(2, 10);
    let again = body.handle().restart().expect("nothing was read");
    assert!(next(&mut body).expect("an error").is_err());
    assert_eq!(again.size_hint().lower(), 0);
    assert!(!again.is_end_stream());
}

#[test]
fn length_counts_the_kept_content() {
    let mut body = RequestBody::new(Full::new(Bytes::from_static(b"12345")));
    let replay = body.handle();
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(next(&mut body).is_some());
    assert_eq!(body.size_hint().exact(), Some(0));
    let again = replay.restart().expect("the content was recorded");
    assert_eq!(again.size_hint().exact(), Some(5));
}

#[test]
fn long_bodies_are_sent_once() {
    let mut body = pieces(3, MAX_KEPT / 2);
    let replay = body.handle();
    assert!(next(&mut body).is_some());
    assert!(next(&mut body).is_some());
    assert!(replay.restart().is_some(), "just as much as is kept");
    let mut body = pieces(MAX_KEPT_FRAMES + 1, 1);
    let replay = body.handle();
    while next(&mut body).is_some() {}
    assert!(replay.restart().is_none());
}

#[test]
fn empty_body_is_over_at_once() {
    assert!(RequestBody::empty().is_end_stream());
    assert_eq!(RequestBody::empty().size_hint().exact(), Some(0));
}
