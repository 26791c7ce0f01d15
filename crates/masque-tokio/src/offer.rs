//! Requests that a proxy has accepted.

use courser_base::Side;
use courser_http3_tokio::{self as h3, Datagrams, EarlyData, OnUpgrade};
use courser_masque::request::{Carrier, Refusal};
use http::{Request, Response, StatusCode};

use crate::driver;
use crate::protocol::Protocol;
use crate::reset::Reset;
use crate::stream::Stream;
use crate::tunnel::Tunnel;

/// Checks a request against templates, with the check of its protocol.
pub(crate) fn check_request<T, V>(
    request: &Request<()>,
    templates: &[T],
    check: impl Fn(&Request<()>, Option<&str>, &T) -> Result<V, Refusal>,
) -> Result<V, Refusal> {
    let extensions = request.extensions();
    if extensions.get::<EarlyData>().is_some() {
        // An attacker may replay it (RFC 8470 §5.2).
        return Err(Refusal::new(
            StatusCode::TOO_EARLY,
            "a tunnel in early data",
        ));
    }
    let http3 = extensions.get::<h3::Protocol>().map(h3::Protocol::as_str);
    let http2 = extensions
        .get::<hyper::ext::Protocol>()
        .map(hyper::ext::Protocol::as_str);
    let mut found = Err(Refusal::new(StatusCode::NOT_FOUND, "no path of the proxy"));
    for template in templates {
        found = check(request, http3.or(http2), template);
        match &found {
            Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {}
            _ => break,
        }
    }
    found
}

/// The stream of a request, once its response is sent.
pub(crate) enum Offer {
    Http3(OnUpgrade),
    Hyper(Carrier, hyper::upgrade::OnUpgrade, Reset),
}

impl Offer {
    /// Takes the stream of a request. Up to `early` datagrams, and their bytes, wait until the tunnel starts.
    pub(crate) fn of(request: &mut Request<()>, early: (usize, usize)) -> Option<Self> {
        let carrier = Carrier::of(request.version())?;
        if carrier == Carrier::Http3 {
            if let Some(datagrams) = request.extensions().get::<Datagrams>() {
                // Those that arrive while the name is resolved (limit K622).
                datagrams.set_receive_limits(early.0, early.1);
                datagrams.accept();
            }
            return h3::upgrade(request).map(Self::Http3);
        }
        let upgrade = request
            .extensions_mut()
            .remove::<hyper::upgrade::OnUpgrade>()?;
        Some(Self::Hyper(carrier, upgrade, Reset::default()))
    }

    pub(crate) const fn carrier(&self) -> Carrier {
        match self {
            Self::Http3(_) => Carrier::Http3,
            Self::Hyper(carrier, ..) => *carrier,
        }
    }

    /// Adds what the server needs to the response that accepts the request.
    pub(crate) fn prepare(&self, response: &mut Response<()>) {
        if let Self::Hyper(Carrier::Http2, _, reset) = self {
            response.extensions_mut().insert(reset.clone());
        }
    }

    /// Starts the tunnel when the response is sent. `None` if the request has ended before.
    pub(crate) async fn start(self, protocol: Protocol) -> Option<Tunnel> {
        let (stream, datagrams) = match self {
            Self::Http3(upgrade) => Stream::of_http3(upgrade.await.ok()?, &protocol),
            Self::Hyper(_, upgrade, reset) => {
                let stream = upgrade.await.ok()?;
                (Stream::of_hyper(stream, &protocol, reset), None)
            }
        };
        if let Some(datagrams) = &datagrams {
            // Whether they go into frames or capsules is known once the settings of the client have arrived.
            datagrams.negotiated().await;
        }
        Some(driver::start(Side::Server, stream, datagrams, protocol))
    }
}
