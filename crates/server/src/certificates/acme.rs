//! Certificates signed by an ACME server (RFC 8555).

mod agent;
mod answers;
mod failure;
mod hook;
mod order;
mod pace;
mod renewal;
mod settings;
mod store;
mod transfer;

use std::sync::Arc;

use courser_quic::ConfigError;
use courser_tls::{ClientOptions, Trust};
use tokio_rustls::TlsConnector;

pub(crate) use self::agent::Agent;
pub use self::hook::{DnsChange, DnsRecord};
pub use self::settings::Acme;

use self::store::Store;
use self::transfer::Client;
use super::dev::make_folder;
use super::resolver::Resolver;

/// Returns the agent that requests certificates, and the resolver of those certificates.
pub(super) fn start(settings: Acme) -> Result<(Agent, Arc<Resolver>), ConfigError> {
    settings.check()?;
    make_folder(&settings.folder).map_err(|error| {
        ConfigError::Identity(format!("{}: {error}", settings.folder.display()))
    })?;
    let trust = settings.roots.clone().map_or(Trust::Platform, Trust::Roots);
    let tls = courser_tls::client_config(ClientOptions::new(trust, vec![b"http/1.1".to_vec()]))?;
    let client = Client::new(TlsConnector::from(tls));
    let store = Store::new(&settings);
    let resolver = Resolver::empty();
    let agent = Agent::new(settings, client, store, resolver.clone());
    Ok((agent, resolver))
}
