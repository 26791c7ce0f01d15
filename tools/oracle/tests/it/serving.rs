//! Servers in the process of the tests: the same services as in the binary, without its log.

use std::convert::Infallible;

use courser::Identity;
use courser::server::{self, Server, ServerHandle};
use courser_oracle::Gateway;
use courser_services::{Recorder, Site};
use http::{Request, Response};
use http_body_util::Full;

/// The response of a function that is served.
pub(crate) type Answer = Response<Full<bytes::Bytes>>;

/// Serves a site until the gateway is dropped.
pub(crate) fn start(site: Site) -> Gateway {
    let recorder = Recorder {
        log: None,
        metrics: None,
    };
    let service = site.into_service(false, recorder);
    let change = |server: Server| server.interim_responses(true);
    serve(service, change).0
}

/// Serves a function until the gateway is dropped. Returns the handle of the server as well.
pub(crate) fn start_function<F>(
    function: impl Fn(Request<server::Body>) -> F + Clone + Send + 'static,
    change: impl FnOnce(Server) -> Server,
) -> (Gateway, ServerHandle)
where
    F: Future<Output = Answer> + Send + 'static,
{
    let service = tower::service_fn(move |request| {
        let answer = function(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    serve(service, change)
}

fn serve(
    service: impl courser::h3::HttpService<server::Body>,
    change: impl FnOnce(Server) -> Server,
) -> (Gateway, ServerHandle) {
    let identity = Identity::dev().expect("random numbers");
    let certificate = identity.certificate();
    let server = change(courser::serve("127.0.0.1:0", identity));
    let bound = server.bind().expect("a port");
    let handle = bound.handle();
    let address = handle.local_addr();
    let task = tokio::spawn(bound.service(service).into_future());
    let guard = Task(task.abort_handle());
    (Gateway::new(address, certificate, guard), handle)
}

/// Ends the server when it is dropped.
struct Task(tokio::task::AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a future on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}
