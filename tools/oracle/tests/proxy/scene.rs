//! A proxy between a client and an upstream server.

use courser::Identity;
use courser_oracle::{Client, Gateway, Request, Script, Seen, Upstream, UpstreamVersion, Version};
use courser_services::{Backend, Proxy, ProxyTimes, Recorder, Site};
use std::time::Duration;

/// A proxy with its upstream server.
pub(crate) struct Scene {
    pub(crate) upstream: Upstream,
    pub(crate) gateway: Gateway,
}

impl Scene {
    /// Starts a proxy for an upstream server of this version.
    pub(crate) async fn start(version: UpstreamVersion) -> Self {
        Self::start_with(version, |proxy| proxy, false).await
    }

    /// Starts a proxy with these settings. `compress` is that of [`Site::into_service`].
    pub(crate) async fn start_with(
        version: UpstreamVersion,
        settings: impl FnOnce(Proxy) -> Proxy,
        compress: bool,
    ) -> Self {
        let upstream = Upstream::start(version).await;
        let backend = Backend::parse(&upstream.url()).expect("a URL");
        let limit = Duration::from_secs(20);
        let times = ProxyTimes {
            connect: limit,
            response: limit,
            body: limit,
        };
        let proxy = settings(Proxy::new(backend, times));
        let recorder = Recorder {
            log: None,
            metrics: None,
        };
        let service = Site::Proxy(Box::new(proxy)).into_service(compress, recorder);
        let identity = Identity::dev().expect("random numbers");
        let server = courser::serve("127.0.0.1:0", identity.clone()).interim_responses(true);
        let bound = server.bind().expect("a port");
        let handle = bound.handle();
        let serving = bound.service(service);
        let task = tokio::spawn(async move { serving.await });
        let address = handle.local_addr();
        let guard = Aborted(task.abort_handle());
        let gateway = Gateway::new(address, identity.certificate(), (handle, guard));
        Self { upstream, gateway }
    }

    pub(crate) async fn client(&self, version: Version) -> Client {
        Client::connect(version, &self.gateway).await
    }

    /// Sends a request on a new connection. Returns the response, and what the upstream server received.
    pub(crate) async fn exchange(&self, version: Version, request: &Request) -> (Seen, Vec<Seen>) {
        let answer = self.client(version).await.exchange(request).await;
        (answer, self.upstream.take().await)
    }

    /// Sends a request that must arrive. Returns what the upstream server received.
    pub(crate) async fn forward(&self, version: Version, request: &Request) -> Seen {
        let (answer, mut seen) = self.exchange(version, request).await;
        assert_eq!(answer.status(), 200, "{version}: {answer}\nfor {request:?}");
        assert_eq!(seen.len(), 1, "{version}: {seen:?}");
        seen.remove(0)
    }

    /// Sends a request to an upstream server that follows a script. Returns the response.
    pub(crate) async fn answer(&self, version: Version, script: Script) -> Seen {
        self.upstream.script(script);
        self.exchange(version, &Request::new("GET", "/")).await.0
    }
}

/// A task that ends with its owner.
struct Aborted(tokio::task::AbortHandle);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Calls `check` for each version of the client and each of the upstream server.
pub(crate) async fn each_pair(mut check: impl AsyncFnMut(&Scene, Version)) {
    for upstream in UpstreamVersion::ALL {
        let scene = Scene::start(upstream).await;
        for client in Version::ALL {
            check(&scene, client).await;
        }
    }
}
