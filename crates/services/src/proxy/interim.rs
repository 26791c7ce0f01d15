//! Interim responses of the upstream server.

use std::pin::pin;

use courser::h3::Interim;
use http::response::Parts;
use http::{Request, Response, StatusCode, Version};
use tokio::sync::mpsc;

use super::forward;

/// Forwards the interim responses to one request, as a proxy must (RFC 9110 §15.2). Upstream servers that
/// speak HTTP/2 have none: hyper's client skips them.
pub(super) struct Relay {
    heard: mpsc::Receiver<Parts>,
    client: Interim,
}

impl Relay {
    /// Makes a relay from the interim responses to `request` to `client`.
    pub(super) fn new<B>(request: &mut Request<B>, client: Interim) -> Self {
        let (hears, heard) = mpsc::channel(MOST_AT_ONCE);
        hyper::ext::on_informational(request, move |interim| {
            // The proxy itself has sent 100 (Continue) to clients that wait for it.
            if interim.status() == StatusCode::CONTINUE {
                return;
            }
            let mut response = Response::new(());
            *response.status_mut() = interim.status();
            *response.version_mut() = interim.version();
            *response.headers_mut() = interim.headers().clone();
            // This cannot wait. Interim responses beyond the limit are dropped, as clients would drop
            // them.
            let _ = hears.try_send(response.into_parts().0);
        });
        Self { heard, client }
    }

    /// Waits for the final response, and forwards all interim responses before it.
    pub(super) async fn until<T>(mut self, response: impl Future<Output = T>) -> T {
        let mut response = pin!(response);
        loop {
            tokio::select! {
                biased;
                Some(interim) = self.heard.recv() => self.pass_on(interim).await,
                response = &mut response => {
                    while let Ok(interim) = self.heard.try_recv() {
                        self.pass_on(interim).await;
                    }
                    return response;
                }
            }
        }
    }

    async fn pass_on(&self, mut interim: Parts) {
        forward::prepare_response(&mut interim, Version::HTTP_3);
        // An error means that the client is gone, and with it the reason to forward.
        let _ = self.client.send(Response::from_parts(interim, ())).await;
    }
}

/// Interim responses that are queued; clients of courser accept as many.
const MOST_AT_ONCE: usize = 8;
