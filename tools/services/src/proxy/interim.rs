//! Forwarding of interim responses of the upstream server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser::h3::Interim;
use courser_base::Mutex;
use http::response::Parts;
use http::{Request, Response, StatusCode, Version};

use super::forward;

/// Forwards the interim responses to one request, as a proxy must (RFC 9110 §15.2). HTTP/2 servers are not
/// covered, because hyper's client discards their interim responses.
pub(super) struct Relay {
    queue: Arc<Mutex<InterimQueue>>,
    client: Interim,
}

/// Interim responses that have arrived and are not forwarded yet. Empty for nearly all requests, and then
/// without an allocation.
#[derive(Default)]
struct InterimQueue {
    responses: VecDeque<Parts>,
    waiting: Option<Waker>,
}

impl Relay {
    /// Creates a relay that forwards the interim responses to `request` to `client`.
    pub(super) fn new<B>(request: &mut Request<B>, client: Interim) -> Self {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let sender = queue.clone();
        hyper::ext::on_informational(request, move |interim| {
            // The proxy itself has sent 100 (Continue) to clients that wait for it.
            if interim.status() == StatusCode::CONTINUE {
                return;
            }
            let mut response = Response::new(());
            *response.status_mut() = interim.status();
            *response.version_mut() = interim.version();
            *response.headers_mut() = interim.headers().clone();
            let woken = sender.lock().push(response.into_parts().0);
            woken.into_iter().for_each(Waker::wake);
        });
        Self { queue, client }
    }

    /// Waits for the final response, and forwards all interim responses that precede it.
    pub(super) async fn until<T>(self, mut response: Pin<&mut impl Future<Output = T>>) -> T {
        loop {
            let next = std::future::poll_fn(|cx| {
                let queue = self.queue.lock().poll(cx);
                match queue {
                    Poll::Ready(interim) => Poll::Ready(Next::Interim(interim)),
                    Poll::Pending => response.as_mut().poll(cx).map(Next::Final),
                }
            });
            match next.await {
                // Boxed, so that the future reserves no memory for an interim response, which nearly all
                // requests lack.
                Next::Interim(interim) => Box::pin(self.forward(interim)).await,
                Next::Final(response) => {
                    while let Some(interim) = self.take() {
                        Box::pin(self.forward(interim)).await;
                    }
                    return response;
                }
            }
        }
    }

    fn take(&self) -> Option<Parts> {
        self.queue.lock().responses.pop_front()
    }

    async fn forward(&self, mut interim: Parts) {
        forward::prepare_response(&mut interim, Version::HTTP_3);
        // Fails if the client is gone, and then nothing remains to forward.
        let _ = self.client.send(Response::from_parts(interim, ())).await;
    }
}

enum Next<T> {
    Interim(Parts),
    Final(T),
}

impl InterimQueue {
    /// Adds an interim response and returns the task to wake. hyper's callback cannot wait, so responses beyond
    /// the limit are dropped, as clients would drop them.
    fn push(&mut self, interim: Parts) -> Option<Waker> {
        if self.responses.len() < MAX_AT_ONCE {
            self.responses.push_back(interim);
        }
        self.waiting.take()
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<Parts> {
        if let Some(interim) = self.responses.pop_front() {
            return Poll::Ready(interim);
        }
        match &mut self.waiting {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waiting = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// Largest number of queued interim responses (limit K217), the number that courser's client accepts.
const MAX_AT_ONCE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninth_interim_response_is_not_queued() {
        let mut queue = InterimQueue::default();
        for _ in 0..9 {
            assert!(queue.push(Response::new(()).into_parts().0).is_none());
        }
        let cx = Context::from_waker(Waker::noop());
        let queued = std::iter::from_fn(|| queue.poll(&cx).is_ready().then_some(()));
        assert_eq!(queued.count(), 8);
        assert!(queue.push(Response::new(()).into_parts().0).is_some());
    }
}
