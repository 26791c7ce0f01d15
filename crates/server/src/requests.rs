//! What happens to the requests that the service has: their counters, and reports of panics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

#[cfg(feature = "metrics")]
pub(crate) use courser_observe::hooks::{
    CLIENT_CLOSED, EndedRequest, HttpCounts, HttpVersion, method_index,
};
use http::Extensions;

#[cfg(not(feature = "metrics"))]
pub(crate) use self::uncounted::{
    CLIENT_CLOSED, EndedRequest, HttpCounts, HttpVersion, method_index,
};
use crate::events::Events;
use crate::peer::{Peer, Protocol};

/// What the requests of all connections share.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    /// The counters of requests, if metrics are on.
    pub(crate) counts: Option<Arc<HttpCounts>>,
    /// Number of panics of the service and of the content of its responses.
    pub(crate) panics: AtomicU64,
    pub(crate) events: Events,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) extensions: MoreExtensions,
}

/// The extensions that each request gets beside its [`Peer`].
#[derive(Clone, Default)]
pub(crate) struct MoreExtensions(Option<Arc<Insert>>);

type Insert = dyn Fn(&Peer, &mut Extensions) + Send + Sync;

impl MoreExtensions {
    /// Adds an extension after those that are there.
    pub(crate) fn and<T, F>(self, make: F) -> Self
    where
        T: Clone + Send + Sync + 'static,
        F: Fn(&Peer) -> T + Send + Sync + 'static,
    {
        Self(Some(Arc::new(move |peer, extensions| {
            self.insert(peer, extensions);
            extensions.insert(make(peer));
        })))
    }

    #[inline]
    pub(crate) fn insert(&self, peer: &Peer, extensions: &mut Extensions) {
        if let Some(insert) = &self.0 {
            insert(peer, extensions);
        }
    }
}

impl fmt::Debug for MoreExtensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MoreExtensions")
    }
}

impl From<Protocol> for HttpVersion {
    #[inline]
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http1 => Self::Http1,
            Protocol::Http2 => Self::Http2,
            Protocol::Http3 => Self::Http3,
        }
    }
}

/// Stands for the counters without the feature `metrics`: there are none, and the code that uses them is removed.
#[cfg(not(feature = "metrics"))]
mod uncounted {
    use std::time::Duration;

    use http::{Method, StatusCode};

    #[derive(Debug)]
    pub(crate) enum HttpCounts {}

    impl HttpCounts {
        pub(crate) const fn record(&self, _: &EndedRequest) {
            match *self {}
        }
    }

    #[expect(dead_code, reason = "read by the counters only")]
    #[derive(Debug)]
    pub(crate) struct EndedRequest {
        pub(crate) version: HttpVersion,
        pub(crate) method: usize,
        pub(crate) status: StatusCode,
        pub(crate) took: Duration,
        pub(crate) bytes: u64,
        pub(crate) is_complete: bool,
    }

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum HttpVersion {
        Http1,
        Http2,
        Http3,
        Unknown,
    }

    pub(crate) const fn method_index(_: &Method) -> usize {
        0
    }

    pub(crate) const CLIENT_CLOSED: StatusCode = StatusCode::BAD_REQUEST;
}
