//! The TLS sessions and HTTP/3 settings that a client keeps for its next connection.

use std::sync::Arc;

use courser::{ClientConfig, TransportConfig, h3};
use rustls::client::Resumption;

use crate::plan::{Plan, Resume};

/// The sessions of one client, which it does not share with other clients.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) tls: Arc<rustls::ClientConfig>,
    pub(crate) quic: ClientConfig,
    /// The settings of the server, on which early requests depend (RFC 9114 §7.2.4.2).
    pub(crate) settings: Option<h3::Settings>,
}

impl Sessions {
    pub(crate) fn new(plan: &Plan, transport: TransportConfig) -> Self {
        let mut tls = plan.tls.clone();
        if plan.resume != Resume::Never {
            let mut own = rustls::ClientConfig::clone(&tls);
            own.resumption = Resumption::in_memory_sessions(TICKETS);
            tls = Arc::new(own);
        }
        let quic = ClientConfig::with_rustls(tls.clone())
            .versions(plan.versions.iter().copied())
            .early_data(plan.resume == Resume::EarlyData)
            .transport_config(transport);
        Self {
            tls,
            quic,
            settings: None,
        }
    }
}

/// Tickets that rustls keeps for one server.
const TICKETS: usize = 8;
