//! TLS configurations of clients and servers.

use std::sync::{Arc, OnceLock};

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::rustls::server::ServerSessionMemoryCache;
use courser_tls::{EarlyDataOptions, ServerOptions, TlsServer, server_config};

/// The use of early data (0-RTT) in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Early {
    /// No end supports it.
    Off,
    /// The client has met the server before, and the server accepts its early data.
    Accepted,
    /// The client has met the server before, but the server has forgotten that.
    Refused,
}

/// The TLS configurations of both ends.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) client: Arc<dyn ClientTls>,
    pub(crate) server: Arc<dyn ServerTls>,
}

impl Ends {
    /// Two honest ends. The client trusts the server's certificate, whose signatures have a fixed
    /// length, and resumes no sessions.
    pub(crate) fn honest() -> Self {
        static CONFIG: OnceLock<Ends> = OnceLock::new();
        let make = || Self {
            client: courser_sim::host::client_tls(ALPN),
            server: courser_sim::host::server_tls(ALPN),
        };
        CONFIG.get_or_init(make).clone()
    }

    /// A hostile client and an honest server.
    pub(crate) fn of_hostile_client() -> Self {
        static CONFIG: OnceLock<Ends> = OnceLock::new();
        let make = || Self {
            client: courser_adversary::client_tls(ALPN),
            server: Self::honest().server,
        };
        CONFIG.get_or_init(make).clone()
    }

    /// Two ends that support early data. They are made for each run, because they remember sessions.
    pub(crate) fn early() -> Self {
        Self {
            client: courser_adversary::early_client_tls(ALPN),
            server: early_server(),
        }
    }

    /// Like [`Ends::early`], with a server that accepts early data even if it lowers its limits.
    pub(crate) fn early_of_hostile_server() -> Self {
        Self {
            client: courser_adversary::early_client_tls(ALPN),
            server: courser_adversary::forgetful_server_tls(ALPN),
        }
    }

    /// Replaces the server by one without stored sessions.
    pub(crate) fn forget_sessions(&mut self) {
        self.server = early_server();
    }
}

/// Returns the configuration of a server that accepts early data and has no stored sessions yet.
fn early_server() -> Arc<dyn ServerTls> {
    let options = ServerOptions::new(courser_sim::host::identity(), vec![ALPN.to_vec()]);
    let config = server_config(options).expect("certificate and key fit together");
    let early = EarlyDataOptions {
        sessions: ServerSessionMemoryCache::new(SESSIONS),
        ..EarlyDataOptions::default()
    };
    let tls = TlsServer::with_early_data(config, early);
    Arc::new(tls.expect("the configuration supports QUIC"))
}

/// Sessions that a server keeps. Each handshake of a run brings two.
const SESSIONS: usize = 32;

const ALPN: &[u8] = b"h3";
