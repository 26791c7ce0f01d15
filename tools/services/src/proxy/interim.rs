//! Interim responses of the upstream server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser::h3::Interim;
use courser_base::Mutex;
use http::response::Parts;
use http::{Request, Response, StatusCode, Version};

use super::forward;

/// Forwards the interim responses to one request, as a proxy must (RFC 9110 §15.2). Upstream servers that
/// speak HTTP/2 have none: hyper's client skips them.
pub(super) struct Relay {
    heard: Arc<Mutex<Heard>>,
    client: Interim,
}

/// The interim responses that have arrived and are not forwarded yet. Nearly all requests have none, so
/// it allocates nothing for them.
#[derive(Default)]
struct Heard {
    responses: VecDeque<Parts>,
    waiting: Option<Waker>,
}

impl Relay {
    /// Makes a relay from the interim responses to `request` to `client`.
    pub(super) fn new<B>(request: &mut Request<B>, client: Interim) -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let hears = heard.clone();
        hyper::ext::on_informational(request, move |interim| {
            // The proxy itself has sent 100 (Continue) to clients that wait for it.
            if interim.status() == StatusCode::CONTINUE {
                return;
            }
            let mut response = Response::new(());
            *response.status_mut() = interim.status();
            *response.version_mut() = interim.version();
            *response.headers_mut() = interim.headers().clone();
            let woken = hears.lock().push(response.into_parts().0);
            woken.into_iter().for_each(Waker::wake);
        });
        Self { heard, client }
    }

    /// Waits for the final response, and forwards all interim responses before it.
    pub(super) async fn until<T>(self, mut response: Pin<&mut impl Future<Output = T>>) -> T {
        loop {
            let next = std::future::poll_fn(|cx| {
                let heard = self.heard.lock().poll(cx);
                match heard {
                    Poll::Ready(interim) => Poll::Ready(Next::Interim(interim)),
                    Poll::Pending => response.as_mut().poll(cx).map(Next::Final),
                }
            });
            match next.await {
                // Boxed, since nearly all requests have none, and need no room for it.
                Next::Interim(interim) => Box::pin(self.pass_on(interim)).await,
                Next::Final(response) => {
                    while let Some(interim) = self.take() {
                        Box::pin(self.pass_on(interim)).await;
                    }
                    return response;
                }
            }
        }
    }

    fn take(&self) -> Option<Parts> {
        self.heard.lock().responses.pop_front()
    }

    async fn pass_on(&self, mut interim: Parts) {
        forward::prepare_response(&mut interim, Version::HTTP_3);
        // An error means that the client is gone, and with it the reason to forward.
        let _ = self.client.send(Response::from_parts(interim, ())).await;
    }
}

enum Next<T> {
    Interim(Parts),
    Final(T),
}

impl Heard {
    /// Adds an interim response. The connection cannot wait: those beyond the limit are dropped, as clients
    /// would drop them. Returns the task to wake.
    fn push(&mut self, interim: Parts) -> Option<Waker> {
        if self.responses.len() < MOST_AT_ONCE {
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

/// Interim responses that are queued (limit K217); clients of courser accept as many.
const MOST_AT_ONCE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ninth_interim_response_is_not_queued() {
        let mut heard = Heard::default();
        for _ in 0..9 {
            assert!(heard.push(Response::new(()).into_parts().0).is_none());
        }
        let cx = Context::from_waker(Waker::noop());
        let queued = std::iter::from_fn(|| heard.poll(&cx).is_ready().then_some(()));
        assert_eq!(queued.count(), 8);
        assert!(heard.push(Response::new(()).into_parts().0).is_some());
    }
}
