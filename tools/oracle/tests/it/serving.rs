//! Servers in the process of the tests: the same services as in the binary, without its log.

use courser::Identity;
use courser_oracle::Gateway;
use courser_services::{Recorder, Site};

/// Serves a site until the gateway is dropped.
pub(crate) fn start(site: Site) -> Gateway {
    let identity = Identity::dev().expect("random numbers");
    let certificate = identity.certificate();
    let recorder = Recorder {
        log: None,
        metrics: None,
    };
    let server = courser::serve("127.0.0.1:0", identity).interim_responses(true);
    let bound = server.bind().expect("a port");
    let address = bound.handle().local_addr();
    let serving = bound.service(site.into_service(false, recorder));
    let task = tokio::spawn(serving.into_future());
    Gateway::new(address, certificate, Task(task.abort_handle()))
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
