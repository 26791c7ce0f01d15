//! Interim responses of the server behind.

use std::pin::pin;

use courser::h3::Interim;
use http::response::Parts;
use http::{Request, Response, StatusCode, Version};
use tokio::sync::mpsc;

use super::forward;

/// Passes on the interim responses to one request, as a proxy has to (RFC 9110 §15.2). Servers
/// behind that speak HTTP/2 have none: hyper's client passes over them.
pub(super) struct Relay {
    heard: mpsc::Receiver<Parts>,
    client: Interim,
}

impl Relay {
    /// From what `request` will hear to `client`.
    pub(super) fn new<B>(request: &mut Request<B>, client: Interim) -> Self {
        let (hears, heard) = mpsc::channel(MOST_AT_ONCE);
        hyper::ext::on_informational(request, move |interim| {
            // Who waits for it has heard so from us.
            if interim.status() == StatusCode::CONTINUE {
                return;
            }
            let mut response = Response::new(());
            *response.status_mut() = interim.status();
            *response.version_mut() = interim.version();
            *response.headers_mut() = interim.headers().clone();
            // This cannot wait. Whoever sends so many has more to say than clients listen to.
            let _ = hears.try_send(response.into_parts().0);
        });
        Self { heard, client }
    }

    /// Waits for the final response, which comes after all that was heard before it.
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
        // Without the client there is nobody to answer either.
        let _ = self.client.send(Response::from_parts(interim, ())).await;
    }
}

/// Clients of courser listen to as many.
const MOST_AT_ONCE: usize = 8;
