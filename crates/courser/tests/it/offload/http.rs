//! Slow TLS work of `courser::Client` and `courser::serve`, which run it on threads that may block.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use axum::Router;
use courser::client::{ClientBuilder, HttpVersion, Proxy};
use courser::server::Certificates;
use courser::{Client, serve};

use super::{Gate, Resolver, SLOW, SlowVerifier, identity};
use crate::common::{self, until, within};

/// An HTTP/3 server, and a client whose connections to `localhost` and to [`SLOW`] lead there.
struct Http {
    client: Client,
    port: u16,
}

impl Http {
    fn new(certificates: Certificates, trust: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let server = serve("127.0.0.1:0", certificates)
            .offload_tls(true)
            .without_tcp();
        let bound = server.bind().expect("a port");
        let address = bound.local_addr();
        let serving = bound.service(Router::new()).into_future();
        common::spawn(async move { serving.await.map(drop) });
        let builder = Client::builder()
            .version(HttpVersion::Http3Only)
            .proxy(Proxy::Direct)
            .resolve("localhost", 0, [address.ip()])
            .resolve(SLOW, 0, [address.ip()]);
        Self {
            client: trust(builder).build().expect("a client"),
            port: address.port(),
        }
    }

    /// Returns the status of a response, or the error.
    async fn ask(&self, name: &str) -> Result<u16, String> {
        let url = format!("https://{name}:{}/", self.port);
        let response = within(20, self.client.get(&url)).await;
        let status = response.map(|response| response.status().as_u16());
        status.map_err(|error| error.to_string())
    }

    /// Sends requests to `localhost`, which all arrive while the handshake of another connection waits.
    /// It waits from the time that `began` returns until `resume` is called.
    async fn asks_others_meanwhile(
        self,
        began: impl Future<Output = ()>,
        resume: impl FnOnce(),
    ) -> Result<u16, String> {
        assert_eq!(self.ask("localhost").await, Ok(404));
        let http = Arc::new(self);
        let slow = common::spawn({
            let http = http.clone();
            async move { http.ask(SLOW).await }
        });
        began.await;
        for _ in 0..20 {
            assert_eq!(http.ask("localhost").await, Ok(404));
        }
        assert!(!slow.is_finished());
        resume();
        within(20, slow).await.expect("no panic")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifier_of_a_client_that_awaits_delays_no_request_to_another_origin() {
    let verifier = SlowVerifier::new(SLOW);
    let (is_entered, permits) = (verifier.is_entered.clone(), verifier.permits.clone());
    let (identity, _) = identity();
    let certificates = identity.try_into().expect("a certificate");
    let http = Http::new(certificates, |client| client.verifier(Arc::new(verifier)));
    let began = until(|| is_entered.load(SeqCst));
    let slow = http.asks_others_meanwhile(began, || permits.add_permits(1));
    assert_eq!(slow.await, Ok(404));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolver_of_an_http_server_that_blocks_delays_no_other_connection() {
    let gate = Arc::new(Gate::default());
    let waits = gate.clone();
    let (identity, key) = identity();
    let resolver = Resolver {
        key,
        resolve: Box::new(move |name| {
            if name == SLOW {
                waits.wait();
            }
        }),
    };
    let certificates = Certificates::resolver(Arc::new(resolver));
    let root = identity.certificate();
    let http = Http::new(certificates, |client| {
        client.platform_roots(false).root(root)
    });
    let slow = http.asks_others_meanwhile(gate.holds(1), || gate.open());
    assert_eq!(slow.await, Ok(404));
}
