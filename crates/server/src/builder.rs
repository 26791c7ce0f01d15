//! The settings of a server.

mod http;
mod life;
mod quic;
mod settings;
mod sockets;
mod tls;

use std::fmt;
#[cfg(doc)]
use std::net::SocketAddr;
use std::net::ToSocketAddrs;
use std::sync::Arc;

use courser_quic::{AddressFilter, ConfigError};

use self::settings::{HttpSettings, SocketSettings};
use crate::certificates::Certificates;
use crate::certificates::reset::ResetSecret;
use crate::drain;
use crate::events::Events;
use crate::quic::settings::QuicSettings;
use crate::tls::Settings;

/// Creates the settings of a server on `address` with this certificate. Sockets are opened when it is
/// [awaited](Server::service) or [bound](Server::bind).
///
/// The address is a string such as `"[::]:4433"`, a [`SocketAddr`], or a name with a port; the server listens on
/// all addresses of a name. `[::]` accepts IPv4 clients too. For port 0 the system chooses a port that is free
/// for UDP and TCP.
///
/// The certificate is an [`Identity`](courser_quic::Identity) or [`Certificates`].
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_server::{self as server, Server, serve}; pub use courser_http3_tokio as h3; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::get};
/// use courser::Identity;
///
/// let app = Router::new().route("/", get(|| async { "hello\n" }));
/// let server = courser::serve("127.0.0.1:0", Identity::dev()?).bind()?;
/// println!("https://{}/", server.local_addr());
/// let serving = server.service(app); // await it
/// # drop(serving);
/// # Ok(()) }
/// ```
pub fn serve<C>(address: impl ToSocketAddrs, certificates: C) -> Server
where
    C: TryInto<Certificates>,
    ConfigError: From<C::Error>,
{
    Server {
        sockets: SocketSettings::new(address),
        certificates: certificates.try_into().map_err(ConfigError::from),
        http: HttpSettings::default(),
        quic: QuicSettings::default(),
        reset: None,
        address_filter: Arc::default(),
        tls: Settings::default(),
        drain: drain::Plan::default(),
        events: Events::default(),
        #[cfg(feature = "metrics")]
        metrics: None,
    }
}

/// The settings of a server; see [`serve`].
#[must_use = "nothing is served before this has a service and is awaited"]
pub struct Server {
    pub(crate) sockets: SocketSettings,
    pub(crate) certificates: Result<Certificates, ConfigError>,
    pub(crate) http: HttpSettings,
    pub(crate) quic: QuicSettings,
    pub(crate) reset: Option<ResetSecret>,
    pub(crate) address_filter: Arc<AddressFilter>,
    pub(crate) tls: Settings,
    pub(crate) drain: drain::Plan,
    pub(crate) events: Events,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Option<courser_observe::Metrics>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addresses", &self.sockets.addresses)
            .finish_non_exhaustive()
    }
}
