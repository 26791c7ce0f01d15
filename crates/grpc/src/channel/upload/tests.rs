use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::BodyExt as _;

use super::*;

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;
type Status = Box<tonic::Status>;

/// Yields what it is told, and must not be polled behind its end. As tonic's, it knows nothing in advance.
struct Steps(VecDeque<Polled>);

impl Body for Steps {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let step = self.0.pop_front().expect("not polled behind its end");
        if step.is_pending() {
            cx.waker().wake_by_ref();
        }
        step
    }

    fn size_hint(&self) -> SizeHint {
        let data = self.0.iter().map(|step| match step {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        });
        SizeHint::with_exact(data.sum())
    }
}

fn data(content: &'static str) -> Polled {
    Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(
        content.as_bytes(),
    )))))
}

fn failure() -> Polled {
    Poll::Ready(Some(Err(Box::new(tonic::Status::data_loss("torn")))))
}

const END: Polled = Poll::Ready(None);

/// Returns for each frame its content, whether the body then calls it the last, and what is left by its size hint.
async fn read(steps: impl Into<VecDeque<Polled>>) -> Vec<(String, bool, u64)> {
    let (_upload, mut body) = upload(Steps(steps.into()));
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        let content = match frame {
            Ok(frame) => String::from_utf8_lossy(&frame.into_data().expect("data")).into_owned(),
            Err(error) => error.to_string(),
        };
        let left = body.size_hint().exact().expect("known");
        seen.push((content, body.is_end_stream(), left));
    }
    assert!(body.frame().await.is_none(), "the end stays the end");
    seen
}

fn seen(content: &str, is_last: bool, left: u64) -> (String, bool, u64) {
    (content.to_owned(), is_last, left)
}

#[tokio::test]
async fn only_message_is_known_as_the_last() {
    assert_eq!(read([data("one"), END]).await, [seen("one", true, 0)]);
}

#[tokio::test]
async fn further_messages_are_sent_in_their_order() {
    let steps = [data("one"), data("two!"), data("three"), END, END];
    let expected = [
        seen("one", false, 9),
        seen("two!", false, 5),
        seen("three", false, 0),
    ];
    assert_eq!(read(steps).await, expected);
}

#[tokio::test]
async fn first_message_does_not_wait_for_the_second() {
    let steps = [data("one"), Poll::Pending, data("two"), END, END];
    let expected = [seen("one", false, 3), seen("two", false, 0)];
    assert_eq!(read(steps).await, expected);
}

#[tokio::test]
async fn failure_behind_the_first_message_is_reported_after_it() {
    let steps = [data("one"), failure(), END, END];
    let read = read(steps).await;
    assert_eq!(read[0], seen("one", false, 0));
    assert!(read[1].0.contains("torn"), "{read:?}");
}

#[tokio::test]
async fn dropped_call_cancels_its_messages() {
    let (call, mut body) = upload(Steps([data("one"), Poll::Pending, Poll::Pending].into()));
    body.frame().await.expect("a message").expect("no error");
    drop(call);
    let error = body
        .frame()
        .await
        .expect("an error")
        .expect_err("cancelled");
    let reason = error
        .downcast_ref::<h2::Error>()
        .and_then(h2::Error::reason);
    assert_eq!(reason, Some(h2::Reason::CANCEL));
}
