//! Proxies for packets over HTTP (MASQUE): CONNECT-UDP (RFC 9298) and CONNECT-IP (RFC 9484), on proxies and clients, over
//! HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! Programs use this crate as `courser::masque`.
//!
//! - [`UdpProxy`] is a proxy as a tower service, for any router.
//! - [`UdpClient`] opens tunnels, each of which is a [`Socket`].
//! - [`Socket::into_transport`] is a transport for an endpoint of QUIC, so that QUIC runs inside of QUIC.
//! - [`IpProxy`] forwards whole IP packets between its clients and a [`Device`]; [`IpClient`] opens an [`IpTunnel`].
//! - [`enable`] announces what both need in the settings of a connection of HTTP/3.
//!
//! A QUIC connection through a proxy:
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
//! use courser::masque::UdpClient;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result {
//! # let Started { template, root, .. } = start().await?;
//! # let identity = Identity::dev()?;
//! # let config = ServerConfig::with_identity(&identity)?.alpn(["example"]);
//! # let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! # let target = server.local_addr()?;
//! # tokio::spawn(async move {
//! #     let connection = server.accept().await.ok_or("closed")?.await?;
//! #     let (mut send, mut receive) = connection.accept_bi().await?;
//! #     send.write_all(&receive.read_to_end(100).await?).await?;
//! #     send.finish()?;
//! #     connection.closed().await;
//! #     Result::Ok(())
//! # });
//! # let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["example"]);
//! let client = UdpClient::builder(&template)?.roots([root]).connect().await?;
//! let transport = client.open(&target.to_string()).await?.into_transport();
//! let peer = transport.peer_addr();
//! let endpoint = Endpoint::builder().transport(transport)?;
//! let connection = endpoint.connect_with(config, peer, "localhost")?.await?;
//! let (mut send, mut receive) = connection.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! assert_eq!(receive.read_to_end(100).await?, b"hello");
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod builder;
mod candidates;
mod client;
mod clients;
mod connect;
mod driver;
mod enable;
mod ended;
mod gate;
mod ip;
mod link;
mod narrow;
mod offer;
mod open_error;
mod protocol;
mod proxy;
mod record;
mod relay;
mod reset;
mod resolve;
mod silent;
mod socket;
mod stats;
mod stream;
mod tcp;
mod transport;
#[cfg(all(feature = "tun", target_os = "linux"))]
mod tun;
mod tunnel;

pub use courser_masque::datagram::Malformed;
pub use courser_masque::ip::Template as IpTemplate;
pub use courser_masque::ip::{
    AddressRange, CapsuleError, Destination, Header, InvalidRange, InvalidScope, Pool, Reason,
    Scope, icmp,
};
pub use courser_masque::request::{Refusal, Refused};
pub use courser_masque::{
    Carrier, Host, InvalidNames, InvalidPrefix, InvalidTarget, InvalidTemplate, InvalidTranslator,
    Limits, Mismatch, Names, Policy, Prefix, Prohibited, ProxyError, ReportedError, Target,
    Template, WellKnown,
};

pub use self::builder::{ClientBuilder, transport_config};
pub use self::candidates::Candidates;
pub use self::client::{UdpClient, UdpClientBuilder};
pub use self::clients::{Client, Denied, Permit};
pub use self::enable::enable;
pub use self::ended::{Ended, LostStream};
pub use self::gate::Gate;
pub use self::ip::{
    Device, IpClient, IpClientBuilder, IpProxy, IpProxyStats, IpRequest, IpTunnel, IpTunnelRecord,
    IpTunnelStats, OnIpEnd, Watch, ip_transport_config,
};
pub use self::open_error::OpenError;
pub use self::proxy::UdpProxy;
pub use self::record::{OnEnd, RecordedEnd, TunnelRecord};
pub use self::resolve::Resolving;
pub use self::socket::{SendError, Socket};
pub use self::stats::{ProxyStats, TunnelStats};
pub use self::transport::Transport;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub use self::tun::{Offloads, Tun, TunError, TunStats};
