//! The code of the guide, compiled as doc tests: one module for each page.
//!
//! The pages are in `docs/guide/src`. `cargo xtask tidy` checks that each of them is here.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/introduction.md")]
struct Introduction;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/ten-minutes.md")]
struct TenMinutes;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/from-quinn.md")]
struct FromQuinn;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/from-hyper.md")]
struct FromHyper;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/from-reqwest.md")]
struct FromReqwest;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/from-nginx.md")]
struct FromNginx;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/http3-server.md")]
struct Http3Server;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/http3-client.md")]
struct Http3Client;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/middleware.md")]
struct Middleware;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/websocket.md")]
struct Websocket;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/media.md")]
struct Media;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/webtransport.md")]
struct Webtransport;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/grpc.md")]
struct Grpc;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/masque.md")]
struct Masque;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/vpn.md")]
struct Vpn;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/certificates.md")]
struct Certificates;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/streams.md")]
struct Streams;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/datagrams.md")]
struct Datagrams;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/early-data.md")]
struct EarlyData;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/migration.md")]
struct Migration;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/reconnect.md")]
struct Reconnect;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/production.md")]
struct Production;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/upgrade.md")]
struct Upgrade;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/certbot.md")]
struct Certbot;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/reverse-proxy.md")]
struct ReverseProxy;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/proxy.md")]
struct Proxy;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/seeing-inside.md")]
struct SeeingInside;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/tuning.md")]
struct Tuning;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/security.md")]
struct Security;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/simulator.md")]
struct Simulator;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/sans-io.md")]
struct SansIo;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/controller.md")]
struct Controller;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/measured.md")]
struct Measured;
