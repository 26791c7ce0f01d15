//! TLS configurations of hostile endpoints. They accept any certificate.

use std::sync::Arc;

use courser_crypto::{ClientTls, ServerTls};
use courser_tls::rustls::client::Resumption;
use courser_tls::rustls::server::{ServerSessionMemoryCache, StoresServerSessions};
use courser_tls::{
    ClientOptions, EarlyDataOptions, ServerOptions, TlsClient, TlsServer, Trust, client_config,
    server_config,
};

/// Returns the configuration of a hostile client. It never resumes sessions, so that every handshake
/// costs the server a signature.
pub fn client_tls(alpn: &[u8]) -> Arc<dyn ClientTls> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![alpn.to_vec()])
    };
    let config = client_config(options).expect("the options are valid");
    Arc::new(TlsClient::new(config).expect("the configuration supports QUIC"))
}

/// Returns the configuration of a hostile client that resumes sessions and offers early data.
pub fn early_client_tls(alpn: &[u8]) -> Arc<dyn ClientTls> {
    let options = ClientOptions::new(Trust::AnyServer, vec![alpn.to_vec()]);
    let config = client_config(options).expect("the options are valid");
    Arc::new(TlsClient::with_early_data(config).expect("the configuration supports QUIC"))
}

/// Returns the configuration of a hostile server that accepts early data although it lowers its limits,
/// with the certificate of the simulator.
pub fn forgetful_server_tls(alpn: &[u8]) -> Arc<dyn ServerTls> {
    let options = ServerOptions::new(courser_sim::host::identity(), vec![alpn.to_vec()]);
    let config = server_config(options).expect("certificate and key fit together");
    let early = EarlyDataOptions {
        sessions: Arc::new(Forgetful(ServerSessionMemoryCache::new(SESSIONS))),
        ..EarlyDataOptions::default()
    };
    let tls = TlsServer::with_early_data(config, early);
    Arc::new(tls.expect("the configuration supports QUIC"))
}

/// A store that replaces the limits at the start of each session with zeros, so that no limit appears to be lowered.
#[derive(Debug)]
struct Forgetful(Arc<ServerSessionMemoryCache>);

impl StoresServerSessions for Forgetful {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        // The first byte is the format, and ten limits of eight bytes follow.
        if let Some(limits) = value.get_mut(1..81) {
            limits.fill(0);
        }
        self.0.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.take(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Sessions that a hostile server keeps.
const SESSIONS: usize = 100;

/// Returns the configuration of a hostile server, with the certificate of the simulator.
pub fn server_tls(alpn: &[u8]) -> Arc<dyn ServerTls> {
    courser_sim::host::server_tls(alpn)
}
