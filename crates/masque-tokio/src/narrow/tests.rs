use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Waker};

use bytes::Bytes;
use courser_base::Side;
use tokio::sync::Notify;

use super::*;

/// The other end of a tunnel.
struct OtherEnd {
    tunnel: Tunnel,
    answers: bool,
    /// A packet of it arrives after each request.
    sends: bool,
    requests: AtomicU32,
    has_asked_often: Notify,
}

impl Probe for OtherEnd {
    fn request(&self) -> Option<Bytes> {
        if self.sends {
            self.tunnel
                .state()
                .incoming
                .push(Bytes::from_static(b"packet"));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(
                self.tunnel
                    .poll_receive(&mut cx, &mut Vec::new(), 1)
                    .is_ready()
            );
        }
        if self.requests.fetch_add(1, Relaxed) == 10 {
            self.has_asked_often.notify_one();
        }
        Some(Bytes::from_static(b"are you there"))
    }

    fn is_answered(&self) -> bool {
        self.answers
    }
}

/// Returns the size with which a tunnel of 1000 bytes ends that needs `smallest`. `None` if it is kept.
async fn end(smallest: usize, answers: bool, sends: bool) -> Option<usize> {
    let tunnel = Tunnel::new(Side::Client, None, Vec::new(), 1000);
    let other = Arc::new(OtherEnd {
        tunnel: tunnel.clone(),
        answers,
        sends,
        requests: AtomicU32::new(0),
        has_asked_often: Notify::new(),
    });
    let short = Duration::from_millis(1);
    let times = Times {
        search: short,
        answer: short,
        repeat: short,
    };
    tokio::select! {
        size = size_with(tunnel, smallest, other.clone(), times) => Some(size),
        () = other.has_asked_often.notified() => None,
    }
}

/// MQ-ip-021, limit K635.
#[tokio::test]
async fn only_a_path_whose_other_end_receives_less_is_too_narrow() {
    assert_eq!(end(1280, false, true).await, Some(1000));
    assert_eq!(end(1280, true, true).await, None, "capsules arrive");
    assert_eq!(end(1280, false, false).await, None, "the network is lost");
}
