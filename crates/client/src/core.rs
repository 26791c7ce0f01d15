//! State shared by all clones of a client.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use courser_base::{Mutex, ScopedIp};
use courser_quic::Connection;
use courser_quic::hooks::parse_ip;
use http::{HeaderMap, HeaderValue, Uri};
use tokio::sync::watch;

use super::alt_svc::{AltSvcCache, Change};
use super::body::Body;
use super::cookies::CookieStore;
use super::early_data::Remembered;
use super::endpoints::Endpoints;
use super::error::{Error, ErrorKind};
use super::family::Family;
use super::link::{Established, Facts};
#[cfg(feature = "masque")]
use super::masque_links::MasqueLinks;
use super::move_permits::MovePermits;
use super::origin::Origin;
use super::pool::{Key, Limits, Pool};
use super::proxy::{Proxies, Proxy};
use super::received;
use super::redirect_policy::RedirectPolicy;
use super::resolve::Resolve;
use super::retry::{Budgets, RetryPolicy};
use super::tls::Tls;
use super::udp_memory::UdpMemory;
use super::version::HttpVersion;

/// A function that is called with each new QUIC connection.
#[derive(Clone)]
pub(super) struct OnConnection(pub(super) Arc<dyn Fn(Connection) + Send + Sync>);

impl fmt::Debug for OnConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnConnection")
    }
}

/// The settings of a client, fixed by [`ClientBuilder::build`](super::ClientBuilder::build).
pub(super) struct Settings {
    pub(super) version: HttpVersion,
    pub(super) connect_timeout: Duration,
    pub(super) total_timeout: Option<Duration>,
    pub(super) read_timeout: Option<Duration>,
    pub(super) attempt_delay: Duration,
    pub(super) redirects: RedirectPolicy,
    pub(super) retries: u32,
    pub(super) retry: Option<RetryPolicy>,
    /// True if requests over TCP begin to use QUIC when it was announced.
    pub(super) moves_in_background: bool,
    /// The time to wait for 100 (Continue).
    pub(super) expect_wait: Duration,
    /// The largest content that is sent over HTTP/1.1 without an expectation. `None` to add no expectation.
    pub(super) expects_above: Option<u64>,
    pub(super) decompresses: bool,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) default_headers: HeaderMap,
    pub(super) cookies: Option<Arc<dyn CookieStore>>,
    /// The largest content that is read at once.
    pub(super) content_limit: u64,
    pub(super) https_only: bool,
    pub(super) overrides: HashMap<(String, u16), Vec<ScopedIp>>,
    pub(super) connect_to: Vec<ConnectTo>,
    pub(super) family: Option<Family>,
    pub(super) local_address: Option<ScopedIp>,
    pub(super) interface: Option<String>,
    pub(super) proxy: Proxy,
    pub(super) proxies: Option<Proxies>,
    /// Fields of requests to proxies.
    pub(super) proxy_headers: HeaderMap,
    pub(super) limits: Limits,
    pub(super) alt_svc_file: Option<PathBuf>,
    pub(super) early_data: bool,
    pub(super) greases_quic_bit: bool,
    /// Is called with each new QUIC connection.
    pub(super) on_quic: Option<OnConnection>,
    /// True if TLS allows HTTP/3.
    pub(super) allows_tls13: bool,
    pub(super) tcp: TcpSettings,
}

/// The settings of TCP connections, and of the sockets that replace them.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpSettings {
    /// The Unix domain socket to which all connections are opened.
    pub(super) unix_socket: Option<PathBuf>,
    /// The idle time before a probe, and the time between probes.
    pub(super) keepalive: Option<Duration>,
    pub(super) local_ports: Option<RangeInclusive<u16>>,
    /// True to begin each connection with a header of the PROXY protocol.
    pub(super) sends_proxy_header: bool,
}

/// A rule that connects to another host and port than those of the URL.
#[derive(Clone, Debug)]
pub(super) struct ConnectTo {
    /// The host and port to match; `None` matches all values.
    pub(super) from: (Option<String>, Option<u16>),
    pub(super) to: (Option<String>, Option<u16>),
}

impl Settings {
    /// Returns the host and port to connect to for an origin.
    pub(super) fn destination(&self, origin: &Origin) -> (String, u16) {
        let (host, port) = (origin.host(), origin.port());
        let matching = self.connect_to.iter().find(|rule| {
            let (from_host, from_port) = &rule.from;
            from_host.as_deref().is_none_or(|from| from == host)
                && from_port.is_none_or(|from| from == port)
        });
        match matching {
            Some(rule) => (
                rule.to.0.clone().unwrap_or_else(|| host.to_owned()),
                rule.to.1.unwrap_or(port),
            ),
            None => (host.to_owned(), port),
        }
    }

    /// Returns the addresses that the user has configured for a host and port.
    fn overridden(&self, host: &str, port: u16) -> Option<&Vec<ScopedIp>> {
        let find = |host: &str, port| self.overrides.get(&(host.to_owned(), port));
        // Port 0 matches all ports.
        find(host, port)
            .or_else(|| find(host, 0))
            .or_else(|| find("*", port))
            .or_else(|| find("*", 0))
    }

    /// Returns true if the user has chosen the server of an origin.
    pub(super) fn is_redirected(&self, origin: &Origin) -> bool {
        let (host, port) = self.destination(origin);
        let is_same = host == origin.host() && port == origin.port();
        !is_same || self.is_overridden(&host, port)
    }

    pub(super) fn is_overridden(&self, host: &str, port: u16) -> bool {
        self.overridden(host, port).is_some()
    }

    /// Returns the addresses that match the configured family and that of the local address.
    pub(super) fn of_family(
        &self,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> impl Iterator<Item = SocketAddr> {
        let (family, local) = (self.family, self.local_address);
        addresses.filter(move |address| {
            let is_of_family = family.is_none_or(|family| family.has(address.ip()));
            is_of_family && local.is_none_or(|local| local.ip().is_ipv6() == address.is_ipv6())
        })
    }
}

/// The shared state; see the [module](self).
pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) tls: Tls,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) pool: Arc<Pool>,
    pub(super) quic: Endpoints,
    /// The connections to MASQUE proxies.
    #[cfg(feature = "masque")]
    pub(super) masque: MasqueLinks,
    pub(super) moves: MovePermits,
    pub(super) budgets: Budgets,
    /// The remembered settings of servers, or `None` if early data is off.
    pub(super) early_data: Option<Remembered>,
    alt_svc: Mutex<AltSvcCache>,
    udp_memory: Mutex<UdpMemory>,
    /// The local addresses of the latest connections: IPv4, then IPv6.
    networks: Mutex<[Option<IpAddr>; 2]>,
    has_unsaved_alternatives: AtomicBool,
    /// Changes when the last clone of the client is dropped.
    is_alive: watch::Receiver<()>,
}

/// Exists as long as a clone of the client.
#[derive(Debug)]
pub(super) struct Alive {
    _sender: watch::Sender<()>,
}

impl Core {
    pub(super) fn new(
        settings: Settings,
        tls: Tls,
        resolver: Arc<dyn Resolve>,
    ) -> Result<(Self, Alive), Error> {
        let alt_svc = match &settings.alt_svc_file {
            Some(path) => AltSvcCache::load(SystemTime::now(), path)?,
            None => AltSvcCache::default(),
        };
        let (alive, is_alive) = watch::channel(());
        let core = Self {
            pool: Pool::new(settings.limits),
            // Requests may use QUIC even if the client does not.
            early_data: settings.early_data.then(Remembered::default),
            quic: Endpoints::new(settings.greases_quic_bit),
            #[cfg(feature = "masque")]
            masque: MasqueLinks::default(),
            moves: MovePermits::default(),
            budgets: Budgets::default(),
            settings,
            tls,
            resolver,
            alt_svc: Mutex::new(alt_svc),
            udp_memory: Mutex::default(),
            networks: Mutex::default(),
            has_unsaved_alternatives: AtomicBool::new(false),
            is_alive,
        };
        Ok((core, Alive { _sender: alive }))
    }

    /// Runs a future until its end, or until the last clone of the client is dropped. Otherwise, a task that holds
    /// this state would keep its connections open and its file unsaved.
    pub(super) fn spawn_in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut is_alive = self.is_alive.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = is_alive.changed() => {}
                () = task => {}
            }
        });
    }

    /// Returns the key of the pool for connections to the origin of a URI, with the versions of HTTP of the request if
    /// it has its own.
    ///
    /// # Errors
    /// Returns an error if the proxy for it cannot be used.
    pub(super) fn key(
        &self,
        origin: &Origin,
        uri: &Uri,
        version: Option<&HttpVersion>,
    ) -> Result<Key, Error> {
        let proxies = self.settings.proxies.as_ref();
        let proxy = proxies.map_or(Ok(None), |proxies| proxies.choose(origin, uri))?;
        Ok(Key {
            origin: origin.clone(),
            proxy,
            address: None,
            version: version.copied().unwrap_or(self.settings.version),
        })
    }

    /// Makes the next connection to a server start without early data, and therefore with a race. Other tickets
    /// of the server may be rejected too.
    pub(super) fn disable_early_data(&self, origin: &Origin, facts: &Facts) {
        if let Some(remembered) = &self.early_data {
            remembered.remove(origin.host(), facts.remote.port());
        }
    }

    pub(super) fn may_use_quic(&self, key: &Key) -> bool {
        let settings = &self.settings;
        key.origin.is_secure()
            && key.version.may_use_quic()
            && settings.allows_tls13
            && settings.tcp.unix_socket.is_none()
    }

    /// Resolves a host to at least one address, in order of preference.
    pub(super) async fn lookup(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let found = if let Some(known) = self.settings.overridden(host, port) {
            known.clone()
        } else if let Some(literal) = self.literal(host)? {
            vec![literal]
        } else {
            self.resolver.addresses(host).await.map_err(|error| {
                let text = format!("cannot resolve {host}: {error}");
                Error::new(ErrorKind::Resolve, text).with_source(error)
            })?
        };
        let found = found.into_iter().map(|ip| ip.with_port(port));
        let addresses: Vec<_> = self.settings.of_family(found).collect();
        if addresses.is_empty() {
            let family = match self.settings.family {
                Some(Family::V4) => "IPv4 ",
                Some(Family::V6) => "IPv6 ",
                None => "usable ",
            };
            // The address of a literal is known.
            let kind = match host.parse::<IpAddr>() {
                Ok(_) => ErrorKind::Connect,
                Err(_) => ErrorKind::Resolve,
            };
            let text = format!("{host} has no {family}address");
            return Err(Error::new(kind, text));
        }
        Ok(addresses)
    }

    /// Returns the host if it is an address. A link-local address without a zone gets the zone of the client's
    /// interface.
    fn literal(&self, host: &str) -> Result<Option<ScopedIp>, Error> {
        let is_literal = host.contains('%') || host.parse::<IpAddr>().is_ok();
        if !is_literal {
            return Ok(None);
        }
        let wrong = |error: io::Error| Error::new(ErrorKind::Resolve, error.to_string());
        let ip = parse_ip(host).map_err(wrong)?;
        match &self.settings.interface {
            Some(interface) if ip.lacks_zone() => {
                let in_zone = parse_ip(&format!("{host}%{interface}"));
                in_zone.map(Some).map_err(wrong)
            }
            None if ip.lacks_zone() => {
                let text = format!(
                    "{host} is a link-local address: name its interface, as in https://[{host}%25eth0]/"
                );
                Err(Error::new(ErrorKind::Resolve, text))
            }
            _ => Ok(Some(ip)),
        }
    }

    pub(super) fn alt_svc(&self) -> MutexGuard<'_, AltSvcCache> {
        self.alt_svc.lock()
    }

    pub(super) fn udp_memory(&self) -> MutexGuard<'_, UdpMemory> {
        self.udp_memory.lock()
    }

    /// Processes the `alt-svc` fields of a response to a request of `key`.
    pub(super) fn on_response(&self, key: &Key, response: &http::Response<Body>) {
        let headers = response.headers();
        if !headers.contains_key(http::header::ALT_SVC) {
            return;
        }
        let values = headers.get_all(http::header::ALT_SVC).into_iter();
        let values = values.filter_map(|value| value.to_str().ok());
        // RFC 7838 §3.1: the lifetime began when the response was generated.
        let age = Duration::from_secs(received::age(headers).min(MAX_AGE));
        let generated = SystemTime::now().checked_sub(age);
        let generated = generated.unwrap_or(SystemTime::UNIX_EPOCH);
        let change = self.on_announced(key, generated, values);
        // The pool may have forgotten the origin while its only connections were in use.
        let may_be_forgotten = response.version() <= http::Version::HTTP_11;
        if may_be_forgotten && change == Change::Renewed && self.may_move(key) {
            let now = Instant::now();
            self.pool.with_moves(key, |moves| {
                if !moves.is_expected() {
                    moves.expect(now);
                }
            });
        }
    }

    /// Processes the value of an ALTSVC frame for the origin of `key` (RFC 7838 §4).
    pub(super) fn on_alt_svc_frame(&self, key: &Key, value: &str) {
        self.on_announced(key, SystemTime::now(), std::iter::once(value));
    }

    fn on_announced<'a>(
        &self,
        key: &Key,
        generated: SystemTime,
        values: impl Iterator<Item = &'a str>,
    ) -> Change {
        let change = self.alt_svc().on_announced(generated, &key.origin, values);
        match change {
            Change::Announced => {
                let now = Instant::now();
                if self.may_move(key) {
                    self.pool.with_moves(key, |moves| moves.on_announced(now));
                }
                self.pool.with_related_moves(key, |key, moves| {
                    if self.may_move(key) {
                        moves.on_announced(now);
                    }
                });
            }
            Change::Withdrawn => self.pool.withdraw(&key.origin),
            Change::Nothing | Change::Renewed => {}
        }
        if change != Change::Nothing {
            self.has_unsaved_alternatives.store(true, Ordering::Relaxed);
        }
        change
    }

    /// Adds a QUIC connection to the pool beside one over TCP, unless the server has withdrawn its announcement
    /// meanwhile.
    pub(super) fn share_quic(&self, key: &Key, established: &Established) {
        if !established.facts.is_announced || self.announces_http3(&key.origin) {
            self.pool.share(key, established);
        }
    }

    /// Returns true if requests of `key` may move to QUIC in the background.
    pub(super) fn may_move(&self, key: &Key) -> bool {
        let settings = &self.settings;
        let is_possible = settings.moves_in_background && key.version.may_use_tcp();
        is_possible && key.proxy.is_none() && self.may_use_quic(key)
    }

    /// Returns true if the origin has announced HTTP/3 and has not withdrawn that.
    pub(super) fn announces_http3(&self, origin: &Origin) -> bool {
        let known = self.alt_svc().alternatives(SystemTime::now(), origin);
        !known.is_empty()
    }

    /// Records the local address of a connection. A change indicates another network.
    pub(super) fn on_local_address(&self, local: IpAddr) {
        if local.is_loopback() {
            return;
        }
        let mut networks = self.networks.lock();
        let entry = &mut networks[usize::from(local.is_ipv6())];
        let before = entry.replace(local);
        drop(networks);
        if before.is_some_and(|before| before != local) {
            self.alt_svc().on_network_changed();
        }
    }

    /// Discards what was learned about the previous network.
    pub(super) fn on_network_changed(&self) {
        self.alt_svc().on_network_changed();
        self.udp_memory().on_network_changed();
        self.pool.on_network_changed(Instant::now());
    }

    /// Records that a QUIC connection received a response after its path was silent.
    pub(super) fn on_silence_ended(&self, facts: &Facts, origin: &Origin) {
        if let Some(local) = facts.local {
            let mut memory = self.udp_memory();
            memory.on_worked(local.ip(), origin);
            if let Some(alternative) = &facts.alternative {
                memory.on_alternative_worked(local.ip(), origin, alternative);
            }
        }
    }

    /// Writes the file of alternatives if one is set and alternatives were announced.
    pub(super) fn save_alt_svc(&self) -> Result<(), Error> {
        let Some(path) = &self.settings.alt_svc_file else {
            return Ok(());
        };
        if self.has_unsaved_alternatives.swap(false, Ordering::Relaxed) {
            self.alt_svc().save(SystemTime::now(), path)?;
        }
        Ok(())
    }
}

/// The largest age of a response that counts: a year, as no alternative lives as long.
const MAX_AGE: u64 = 365 * 86_400;

impl Drop for Core {
    fn drop(&mut self) {
        // Callers that need the error call `save_alt_svc` before.
        let _ = self.save_alt_svc();
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("version", &self.settings.version)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
