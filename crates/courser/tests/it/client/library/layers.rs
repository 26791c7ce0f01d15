//! The client as a service within layers of tower.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Response;
use tower::retry::Policy;
use tower::{Service as _, ServiceBuilder, ServiceExt as _};

use super::*;

/// Repeats requests that were answered with 503, as often as it has attempts left.
#[derive(Clone)]
struct Attempts(usize);

impl Policy<Request<Body>, Response<Body>, courser::client::Error> for Attempts {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<Body>, courser::client::Error>,
    ) -> Option<Self::Future> {
        let is_busy = matches!(result, Ok(response) if response.status() == 503);
        self.0 = self.0.checked_sub(1).filter(|_| is_busy)?;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let body = request.body().try_clone()?;
        let mut copy = Request::new(body);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        Some(copy)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_limit_retry_and_time_out() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let server = Server::start(
        Protocols::Both,
        service(move |request| {
            let number = counter.fetch_add(1, Ordering::SeqCst);
            async move {
                if request.uri().path() == "/never" {
                    std::future::pending::<()>().await;
                }
                let content = request.into_body().collect().await.expect("content");
                let mut response = Response::new(full(content.to_bytes()));
                if number < 2 {
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                }
                response
            }
        }),
    )
    .await;
    for version in ALL {
        count.store(0, Ordering::SeqCst);
        let client = builder(&server).version(version).build().expect("a client");
        let mut service = ServiceBuilder::new()
            .buffer(16)
            .timeout(Duration::from_secs(1))
            .concurrency_limit(4)
            .rate_limit(100, Duration::from_secs(1))
            .retry(Attempts(2))
            .service(client.clone());
        let request = client.post(server.url("/")).body("again");
        let response = within(request.send_with(&mut service))
            .await
            .expect("answered");
        assert_eq!(response.status(), 200, "{version:?}");
        assert_eq!(described(response).await, "again");
        assert_eq!(count.load(Ordering::SeqCst), 3, "{version:?}");
        let request = client.get(server.url("/never")).build().expect("a request");
        let ready = within(service.ready()).await.expect("ready");
        let error = within(ready.call(request)).await.expect_err("no response");
        assert!(
            error.is::<tower::timeout::error::Elapsed>(),
            "{version:?}: {error}"
        );
    }
}
