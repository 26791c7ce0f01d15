//! Forwarding of interim responses of the upstream server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser::h3::Interim;
use courser_base::Mutex;
use http::header::EXPECT;
use http::response::Parts;
use http::{HeaderMap, Request, Response, StatusCode, Version};

use super::forward;

/// Forwards the interim responses to one request, as a proxy must (RFC 9110 §15.2).
pub(crate) struct Relay {
    queue: Arc<Mutex<InterimQueue>>,
    client: Interim,
    version: Version,
}

/// The end of a [`Relay`] that takes the interim responses of the upstream server.
pub(crate) struct InterimSender(Arc<Mutex<InterimQueue>>);

/// Interim responses that have arrived and are not forwarded yet. Empty for nearly all requests, and then
/// without an allocation.
#[derive(Default)]
struct InterimQueue {
    responses: VecDeque<Parts>,
    waiting: Option<Waker>,
    /// Number of responses and bytes of their header sections so far.
    count: usize,
    bytes: usize,
}

impl InterimSender {
    /// Creates a sender, and a function that returns the status codes that have arrived.
    #[cfg(test)]
    pub(super) fn for_tests() -> (Self, impl Fn() -> Vec<u16>) {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let arrived = queue.clone();
        let take = move || {
            let responses = std::mem::take(&mut arrived.lock().responses);
            responses.iter().map(|it| it.status.as_u16()).collect()
        };
        (Self(queue), take)
    }

    /// Takes the interim responses to a request over HTTP/1.1.
    pub(crate) fn receive<B>(&self, request: &mut Request<B>) {
        let sender = Self(self.0.clone());
        hyper::ext::on_informational(request, move |interim| {
            sender.add(interim.status(), interim.version(), interim.headers());
        });
    }

    /// Takes an interim response.
    pub(super) fn push(&self, interim: &Response<()>) {
        self.add(interim.status(), interim.version(), interim.headers());
    }

    fn add(&self, status: StatusCode, version: Version, headers: &HeaderMap) {
        // The proxy itself has sent 100 (Continue) to clients that wait for it.
        if status == StatusCode::CONTINUE {
            return;
        }
        let mut queue = self.0.lock();
        if !queue.admits(headers) {
            return;
        }
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers.clone();
        let woken = queue.push(response.into_parts().0);
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Relay {
    /// Creates a relay to a client that uses this version, and the end that takes the interim responses.
    pub(crate) fn new(client: Interim, version: Version) -> (Self, InterimSender) {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let sender = InterimSender(queue.clone());
        let relay = Self {
            queue,
            client,
            version,
        };
        (relay, sender)
    }

    /// Waits for the final response, and forwards all interim responses that precede it.
    pub(crate) async fn until<T>(self, mut response: Pin<&mut impl Future<Output = T>>) -> T {
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
        forward::prepare_response(&mut interim, self.version);
        // Fails if the client is gone, and then nothing remains to forward.
        let _ = self.client.send(Response::from_parts(interim, ())).await;
    }
}

/// Returns true if the client waits for 100 (Continue) before it sends content, and the server does not send it
/// (RFC 9110 §10.1.1): hyper does over HTTP/1.1, and courser over HTTP/3.
pub(crate) fn is_awaited(request: &http::request::Parts) -> bool {
    request.version == Version::HTTP_2
        && request
            .headers
            .get(EXPECT)
            .is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Asks the client for its content. The upstream server is not asked first, because many servers do not answer.
pub(crate) async fn proceed(client: &Interim) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::CONTINUE;
    // Fails if the client is gone, which its content reports.
    let _ = client.send(response).await;
}

enum Next<T> {
    Interim(Parts),
    Final(T),
}

impl InterimQueue {
    /// Returns true if an interim response with these fields is forwarded. Others are dropped, as clients may
    /// ignore them.
    fn admits(&mut self, headers: &HeaderMap) -> bool {
        let fields = headers.iter();
        let bytes: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        // hyper's callback cannot wait until the client has taken the earlier ones.
        let is_admitted = self.responses.len() < MAX_AT_ONCE
            && self.count < MAX_RESPONSES
            && self.bytes + bytes <= MAX_BYTES;
        if is_admitted {
            self.count += 1;
            self.bytes += bytes;
        }
        is_admitted
    }

    /// Adds an interim response and returns the task to wake.
    fn push(&mut self, interim: Parts) -> Option<Waker> {
        self.responses.push_back(interim);
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

/// Largest number of interim responses to one request that are forwarded (limit K356).
const MAX_RESPONSES: usize = 32;
/// Largest number of bytes in their fields (limit K356).
const MAX_BYTES: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn hints(size: usize) -> Response<()> {
        let value = HeaderValue::try_from("x".repeat(size)).expect("a value");
        let response = Response::builder().status(StatusCode::EARLY_HINTS);
        response.header("link", value).body(()).expect("a response")
    }

    #[test]
    fn interim_responses_are_bounded_at_once_and_in_total() {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let sender = InterimSender(queue.clone());
        let cx = Context::from_waker(Waker::noop());
        let taken = || {
            let mut queue = queue.lock();
            std::iter::from_fn(|| queue.poll(&cx).is_ready().then_some(())).count()
        };
        for expected in [8, 8, 8, 8, 0] {
            for _ in 0..9 {
                sender.push(&hints(10));
            }
            assert_eq!(taken(), expected);
        }
    }

    #[test]
    fn bytes_of_interim_responses_are_bounded() {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let sender = InterimSender(queue.clone());
        for (size, is_queued) in [(20_000, true), (20_000, false), (10_000, true)] {
            let before = queue.lock().responses.len();
            sender.push(&hints(size));
            assert_eq!(queue.lock().responses.len() > before, is_queued, "{size}");
        }
    }

    #[test]
    fn continue_is_not_forwarded() {
        let queue = Arc::<Mutex<InterimQueue>>::default();
        let mut response = hints(1);
        *response.status_mut() = StatusCode::CONTINUE;
        InterimSender(queue.clone()).push(&response);
        assert!(queue.lock().responses.is_empty());
    }
}
