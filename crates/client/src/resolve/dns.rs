//! Resolution by DNS servers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_base::ScopedIp;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};

use super::super::Client;
use super::over_https::OverHttps;
use super::{Resolve, Resolving, ServiceRecord};

/// Queries DNS servers directly, for addresses and HTTPS records.
#[derive(Clone)]
pub struct DnsResolver(Servers);

/// The transport of queries.
#[derive(Clone)]
enum Servers {
    /// UDP and TCP.
    Plain(Arc<TokioResolver>),
    Https(Arc<OverHttps>),
}

impl DnsResolver {
    /// Creates a resolver that queries these servers over UDP, and over TCP for long answers.
    ///
    /// # Errors
    /// Returns an error if `servers` is empty or contains a link-local address with a zone, which the DNS client
    /// does not support.
    pub fn new(servers: impl IntoIterator<Item = SocketAddr>) -> io::Result<Self> {
        let servers: Vec<_> = servers.into_iter().collect();
        let is_scoped = |server: &&SocketAddr| ScopedIp::of(**server).scope_id() != 0;
        if let Some(server) = servers.iter().find(is_scoped) {
            let text = format!("{server} has a zone, which the DNS client does not support");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let servers: Vec<_> = servers.into_iter().map(name_server).collect();
        if servers.is_empty() {
            return Err(io::Error::other("no name server: at least one is required"));
        }
        let config = ResolverConfig::from_name_servers(servers);
        Self::build(config, ResolverOpts::default())
    }

    /// Creates a resolver that queries the servers of the system's configuration.
    ///
    /// # Errors
    /// Returns an error if the configuration is missing or invalid.
    pub fn system() -> io::Result<Self> {
        let (config, options) = hickory_resolver::system_conf::read_system_conf().map_err(other)?;
        Self::build(config, options)
    }

    /// Creates a resolver that sends queries over HTTPS to a server with this URL (RFC 8484). `client` sends them,
    /// and resolves the name of the server. Answers are not cached.
    ///
    /// # Errors
    /// Returns an error if `url` is no https URL.
    pub fn over_https(client: Client, url: &str) -> io::Result<Self> {
        let server = OverHttps::new(client, url, TIMEOUT)?;
        Ok(Self(Servers::Https(server.into())))
    }

    fn build(config: ResolverConfig, mut options: ResolverOpts) -> io::Result<Self> {
        // Users do not wait longer for a page. Lost datagrams are repeated earlier.
        options.timeout = options.timeout.min(TIMEOUT);
        let provider = TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(config, provider)
            .with_options(options)
            .build()
            .map_err(other)?;
        Ok(Self(Servers::Plain(Arc::new(resolver))))
    }

    /// Returns the records of a name. No records are not an error.
    async fn records(&self, name: Name, kind: RecordType) -> io::Result<Vec<Record>> {
        let resolver = match &self.0 {
            Servers::Plain(resolver) => resolver,
            Servers::Https(server) => return server.lookup(name, kind).await,
        };
        match resolver.lookup(name, kind).await {
            Ok(answer) => Ok(answer.answers().to_vec()),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(error) => Err(other(error)),
        }
    }

    /// Returns the addresses of one family.
    async fn family(&self, name: Name, kind: RecordType) -> io::Result<Vec<ScopedIp>> {
        let records = self.records(name, kind).await?.into_iter();
        let addresses = records.filter_map(|record| record.data.ip_addr());
        Ok(addresses.map(ScopedIp::from).collect())
    }

    /// Resolves both families concurrently. After the first answer, waits the resolution delay for the other one
    /// (draft-ietf-happy-happyeyeballs-v3 §4.2).
    async fn both_families(self, host: String) -> io::Result<Vec<ScopedIp>> {
        let name = Name::from_utf8(&host).map_err(other)?;
        let mut v6 = std::pin::pin!(self.family(name.clone(), RecordType::AAAA));
        let mut v4 = std::pin::pin!(self.family(name, RecordType::A));
        let (first, second) = tokio::select! {
            first = &mut v6 => match first {
                Ok(found) if !found.is_empty() => {
                    let later = tokio::time::timeout(super::RESOLUTION_DELAY, v4).await;
                    (Ok(found), later.unwrap_or(Ok(Vec::new())))
                }
                first => (first, v4.await),
            },
            second = &mut v4 => match second {
                Ok(found) if !found.is_empty() => {
                    let later = tokio::time::timeout(super::RESOLUTION_DELAY, v6).await;
                    (later.unwrap_or(Ok(Vec::new())), Ok(found))
                }
                second => (v6.await, second),
            },
        };
        let mut found: Vec<ScopedIp> = Vec::new();
        let mut failure = None;
        for answer in [first, second] {
            match answer {
                Ok(addresses) => found.extend(addresses),
                Err(error) => failure = Some(error),
            }
        }
        match (found.is_empty(), failure) {
            (false, _) => Ok(found),
            (true, Some(error)) => Err(error),
            (true, None) => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{host} has no address"),
            )),
        }
    }

    async fn https(self, host: String, port: u16) -> io::Result<Vec<ServiceRecord>> {
        // RFC 9460 §9.1: the name of a record includes the port if it is not 443.
        let mut name = match port {
            443 => host,
            port => format!("_{port}._https.{host}"),
        };
        for _ in 0..MAX_ALIASES {
            let query = Name::from_utf8(&name).map_err(other)?;
            let answers = self.records(query, RecordType::HTTPS).await?;
            let records = answers.iter().filter_map(|record| match &record.data {
                RData::HTTPS(record) => Some(&record.0),
                _ => None,
            });
            let (aliases, services): (Vec<_>, Vec<_>) =
                records.partition(|record| record.svc_priority == 0);
            // RFC 9460 §2.4.2: an alias refers to the records of its target.
            if let Some(alias) = aliases.first() {
                name = alias.target_name.to_ascii();
                continue;
            }
            let mut services: Vec<_> = services
                .into_iter()
                .filter_map(ServiceRecord::read)
                .map(|service| of_alias(service, &name))
                .collect();
            services.sort_by_key(|service| service.priority);
            services.truncate(MAX_SERVICES);
            return Ok(services);
        }
        Ok(Vec::new())
    }
}

/// Sets the target of a record to its owner if it was found through an alias.
fn of_alias(mut service: ServiceRecord, owner: &str) -> ServiceRecord {
    if service.target.is_none() && owner.ends_with('.') {
        service.target = Some(owner.trim_end_matches('.').to_owned());
    }
    service
}

impl Resolve for DnsResolver {
    fn addresses(&self, host: &str) -> Resolving<Vec<ScopedIp>> {
        Box::pin(self.clone().both_families(host.to_owned()))
    }

    fn services(&self, host: &str, port: u16) -> Resolving<Vec<ServiceRecord>> {
        Box::pin(self.clone().https(host.to_owned(), port))
    }
}

impl fmt::Debug for DnsResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DnsResolver")
    }
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let connection = |protocol| {
        let mut connection = ConnectionConfig::new(protocol);
        connection.port = address.port();
        connection
    };
    let connections = [ProtocolConfig::Udp, ProtocolConfig::Tcp].map(connection);
    NameServerConfig::new(address.ip(), true, connections.to_vec())
}

fn other(error: impl Into<Cause>) -> io::Error {
    match error.into() {
        Cause::None(text) => io::Error::new(io::ErrorKind::NotFound, text),
        Cause::Other(text) => io::Error::other(text),
    }
}

/// The reason for an empty answer: the name does not exist, or the query failed.
enum Cause {
    None(String),
    Other(String),
}

impl From<NetError> for Cause {
    fn from(error: NetError) -> Self {
        if error.is_nx_domain() || error.is_no_records_found() {
            return Self::None("no such name".to_owned());
        }
        Self::Other(error.to_string())
    }
}

impl From<hickory_resolver::proto::ProtoError> for Cause {
    fn from(error: hickory_resolver::proto::ProtoError) -> Self {
        Self::Other(format!("not a name: {error}"))
    }
}

/// Largest number of aliases in a chain; longer chains are mistakes.
const MAX_ALIASES: usize = 4;
/// Largest number of services per origin. Real origins have one to three.
const MAX_SERVICES: usize = 8;
const TIMEOUT: Duration = Duration::from_secs(5);
