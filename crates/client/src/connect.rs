//! New connections to an origin: name lookup, the race of attempts, and pooling of the winner.

mod addresses;
mod beside;
mod interim_frames;
mod late;
#[cfg(feature = "masque")]
mod masque;
mod quic;
mod socks;
mod tcp;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_base::{ScopedIp, with_port};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::addresses::{At, ServerAddresses, Source};
pub(super) use self::beside::{Move, connect_over_quic};
use self::late::Attempted;
use self::quic::Doubt;
use super::core::Core;
use super::error::{Error, ErrorKind};
use super::link::Established;
use super::pool::Key;
use super::race::{Candidate, Race, Transport};
use super::timing::{Attempt, Outcome, Timing};

/// Opens a connection for requests to `key`.
///
/// # Cancel safety
/// Dropping the future abandons all attempts.
pub(super) async fn connect(
    core: &Arc<Core>,
    key: &Key,
    timing: &mut Timing,
) -> Result<Established, Error> {
    let limit = core.settings.connect_timeout;
    let result = match tokio::time::timeout(limit, run(core, key, timing)).await {
        Ok(result) => result,
        Err(_) => Err(Error::new(
            ErrorKind::Timeout,
            match &key.proxy {
                Some(proxy) => format!(
                    "no connection to {} through the proxy {proxy} within {limit:?}",
                    key.origin.authority()
                ),
                None => format!(
                    "no connection to {} within {limit:?}",
                    key.origin.authority()
                ),
            },
        )
        .unprocessed(true)),
    };
    result.map_err(|error| error.with_timing(timing.clone()))
}

async fn run(core: &Arc<Core>, key: &Key, timing: &mut Timing) -> Result<Established, Error> {
    if !key.version.may_use_tcp() {
        check_http3_can_be_used(core, key)?;
    }
    if let Some(path) = &core.settings.tcp.unix_socket {
        return tcp::attempt_unix(core, key, path).await;
    }
    if let Some(address) = key.address {
        let mut attempts = Attempts::new(core, key, vec![address]);
        return attempts.run(&mut JoinSet::new(), timing).await;
    }
    #[cfg(feature = "masque")]
    if let Some(via) = &key.proxy
        && let Some(template) = &via.template
    {
        match masque::connect(core, key, (via, template), timing).await? {
            masque::Through::Connected(established) => return Ok(established),
            // The proxy is used over TCP.
            masque::Through::Unreachable(before) => {
                let connected = run_race(core, key, timing).await;
                return connected.map_err(|error| error.after(&before));
            }
        }
    }
    run_race(core, key, timing).await
}

/// Opens a connection by a race to the addresses of the origin or its proxy.
async fn run_race(core: &Arc<Core>, key: &Key, timing: &mut Timing) -> Result<Established, Error> {
    let (host, port) = match &key.proxy {
        Some(proxy) => tcp::proxy_address(&proxy.uri)?,
        None => core.settings.destination(&key.origin),
    };
    let mut searches = JoinSet::new();
    if key.proxy.is_none() && core.may_use_quic(key) {
        addresses::begin(core, &key.origin, (&host, port), &mut searches);
    }
    let addresses = core
        .lookup(&host, port)
        .await
        .map_err(|error| match &key.proxy {
            Some(proxy) if error.kind() == ErrorKind::Resolve => {
                let text = format!("the proxy {proxy} is not reachable: {error}");
                Error::new(ErrorKind::ResolveProxy, text)
            }
            _ => error,
        })?;
    timing.name_lookup = Some(timing.elapsed());
    let mut attempts = Attempts::new(core, key, addresses);
    if attempts.is_quic_worth_trying() {
        attempts.wait_for_searches(&mut searches).await;
    } else {
        searches.abort_all();
    }
    attempts.run(&mut searches, timing).await
}

/// Returns an error if only HTTP/3 is allowed but cannot be used.
fn check_http3_can_be_used(core: &Core, key: &Key) -> Result<(), Error> {
    let authority = key.origin.authority();
    let text = if !key.origin.is_secure() {
        format!("only HTTP/3 is allowed, which is always encrypted: use https://{authority}")
    } else if key.proxy.as_ref().is_some_and(|it| it.template.is_none()) {
        format!(
            "only HTTP/3 is allowed, which can use a MASQUE proxy only, but another proxy is set for \
             {authority}: except this host from it, or allow other versions"
        )
    } else if !core.may_use_quic(key) {
        // `ClientBuilder::build` refuses this for all requests, so this one has chosen HTTP/3 itself.
        "only HTTP/3 is allowed for this request, which needs UDP and TLS 1.3, and the client uses a Unix domain \
         socket or TLS 1.2: allow other versions"
            .to_owned()
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Url, text).unprocessed(true))
}

/// A race with its attempts.
struct Attempts<'a> {
    core: &'a Arc<Core>,
    key: &'a Key,
    addresses: Vec<SocketAddr>,
    /// The local address, which identifies the network.
    local: Option<IpAddr>,
    race: Race,
    /// True if a pooled connection to the origin is silent.
    is_beside_silent: bool,
    /// The `host:port` of the alternatives to which addresses belong.
    alternatives: HashMap<SocketAddr, Box<str>>,
    /// Addresses of QUIC that are known from elsewhere than announcements.
    unannounced: Vec<SocketAddr>,
    /// The end of the earliest period in which an alternative is not tried.
    avoided_until: Option<Instant>,
    quic: JoinSet<Attempted>,
    tcp: JoinSet<Attempted>,
    /// QUIC attempts that are unlikely to succeed. They continue, but the race no longer waits for them.
    doubts: Doubts,
    /// The most informative failure so far.
    failure: Option<Error>,
    /// Alternatives at which an attempt failed.
    failed_alternatives: Vec<Box<str>>,
    tried_alternatives: Vec<Box<str>>,
    quic_failures: usize,
    quic_attempts: usize,
}

/// Receives reports that QUIC attempts are unlikely to succeed.
struct Doubts {
    sender: mpsc::UnboundedSender<(usize, Error)>,
    receiver: mpsc::UnboundedReceiver<(usize, Error)>,
    /// Indexes of the reported attempts.
    reported: Vec<usize>,
}

impl Doubts {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender,
            receiver,
            reported: Vec::new(),
        }
    }
}

impl<'a> Attempts<'a> {
    fn new(core: &'a Arc<Core>, key: &'a Key, addresses: Vec<SocketAddr>) -> Self {
        let mut race = Race::new(core.settings.attempt_delay);
        let is_beside_silent = core.pool.has_silent(key);
        if is_beside_silent {
            race = race.without_head_start();
        }
        if key.version.may_use_tcp() {
            race.add(Transport::Tcp, &addresses);
        }
        Self::of(core, key, addresses, race, is_beside_silent)
    }

    /// Creates a race with QUIC to the origin itself, if that is known or assumed to work.
    fn of(
        core: &'a Arc<Core>,
        key: &'a Key,
        addresses: Vec<SocketAddr>,
        race: Race,
        is_beside_silent: bool,
    ) -> Self {
        let local = core
            .settings
            .local_address
            .map(ScopedIp::ip)
            .or_else(|| addresses.first().and_then(|peer| local_address_for(*peer)));
        if let Some(local) = local {
            core.on_local_address(local);
        }
        let assumes_http3 = key.version.assumes_http3();
        let mut attempts = Self {
            core,
            key,
            addresses,
            local,
            race,
            is_beside_silent,
            alternatives: HashMap::new(),
            unannounced: Vec::new(),
            avoided_until: None,
            quic: JoinSet::new(),
            tcp: JoinSet::new(),
            doubts: Doubts::new(),
            failure: None,
            failed_alternatives: Vec::new(),
            tried_alternatives: Vec::new(),
            quic_failures: 0,
            quic_attempts: 0,
        };
        let is_first = key.proxy.is_none() && key.origin.is_secure() && assumes_http3;
        if is_first && attempts.is_quic_worth_trying() {
            let addresses = attempts.addresses.clone();
            attempts.unannounced.extend(&addresses);
            attempts.race.add(Transport::Quic, &addresses);
        }
        attempts
    }

    /// Returns true unless earlier QUIC connections to the origin from this network failed.
    fn is_quic_worth_trying(&self) -> bool {
        if !self.key.version.may_use_tcp() {
            return true;
        }
        self.local.is_none_or(|local| {
            self.core
                .udp_memory()
                .is_worth_trying(Instant::now(), local, &self.key.origin)
        })
    }

    /// Returns true unless earlier connections to the alternative from this network failed.
    fn is_worth_trying(&mut self, alternative: &str) -> bool {
        let Some(local) = self.local else { return true };
        if !self.key.version.may_use_tcp() {
            return true;
        }
        let (memory, now) = (self.core.udp_memory(), Instant::now());
        let until = memory.alternative_avoided_until(now, local, (&self.key.origin, alternative));
        let known = self.avoided_until;
        self.avoided_until = until.map(|until| known.map_or(until, |known| known.min(until)));
        self.avoided_until = self.avoided_until.or(known);
        until.is_none()
    }

    /// Waits briefly for HTTPS records and alternatives, so that QUIC can start before TCP.
    async fn wait_for_searches(&mut self, searches: &mut JoinSet<Vec<ServerAddresses>>) {
        let all = async {
            while let Some(found) = searches.join_next().await {
                self.add(found.unwrap_or_default());
            }
        };
        // Results that arrive later join the race.
        let _ = tokio::time::timeout(super::resolve::RESOLUTION_DELAY, all).await;
    }

    fn add(&mut self, found: Vec<ServerAddresses>) {
        for place in found {
            let addresses: Vec<_> = match place.at {
                At::Port(port) => self
                    .addresses
                    .iter()
                    .map(|address| with_port(*address, port))
                    .collect(),
                At::Addresses(addresses) => addresses,
            };
            if let Some(name) = &place.alternative
                && !self.is_worth_trying(name)
            {
                continue;
            }
            if let Some(name) = place.alternative {
                let named = addresses.iter().map(|address| (*address, name.clone()));
                self.alternatives.extend(named);
            }
            if place.source == Source::Record {
                self.unannounced.extend(&addresses);
            }
            self.race.add(Transport::Quic, &addresses);
        }
    }

    async fn run(
        &mut self,
        searches: &mut JoinSet<Vec<ServerAddresses>>,
        timing: &mut Timing,
    ) -> Result<Established, Error> {
        loop {
            while let Some(candidate) = self.race.poll(Instant::now()) {
                self.begin(candidate, timing);
            }
            if self.race.is_lost() && searches.is_empty() {
                return Err(self.failure.take().unwrap_or_else(|| {
                    let text = format!("{} has no usable address", self.key.origin.authority());
                    Error::new(ErrorKind::Connect, text)
                }));
            }
            let next = self.race.next_timeout().unwrap_or_else(no_deadline);
            let (transport, attempted) = tokio::select! {
                Some(attempted) = self.quic.join_next() => (Transport::Quic, attempted),
                Some(attempted) = self.tcp.join_next() => (Transport::Tcp, attempted),
                Some((index, error)) = self.doubts.receiver.recv() => {
                    self.doubts.reported.push(index);
                    self.on_failed(index, Transport::Quic, error, timing);
                    continue;
                }
                Some(found) = searches.join_next() => {
                    self.add(found.unwrap_or_default());
                    continue;
                }
                () = tokio::time::sleep_until(next.into()) => continue,
            };
            let Ok((index, result)) = attempted else {
                // The task panicked, or the runtime is shutting down.
                self.race.on_failed(transport);
                continue;
            };
            match result {
                Ok(established) => {
                    let attempt = &mut timing.attempts[index];
                    attempt.ended = Some(timing.began.elapsed());
                    attempt.outcome = Outcome::Won;
                    if transport == Transport::Tcp {
                        self.expect_move(searches);
                    }
                    self.on_won(transport, &established);
                    return Ok(established);
                }
                // It was reported before, so the race has counted it as failed.
                Err(_) if self.doubts.reported.contains(&index) => {}
                Err(error) => self.on_failed(index, transport, error, timing),
            }
        }
    }

    /// Lets requests move to QUIC later, if TCP has won although there may be a server of HTTP/3.
    fn expect_move(&self, searches: &JoinSet<Vec<ServerAddresses>>) {
        if !self.core.may_move(self.key) {
            return;
        }
        let now = Instant::now();
        let is_avoided = !self.is_quic_worth_trying() || self.avoided_until.is_some();
        let at = if self.quic_attempts > 0 {
            // Attempts in progress may still connect.
            Some(now + late::PATIENCE)
        } else {
            (is_avoided || !searches.is_empty()).then_some(now)
        };
        if let Some(at) = at {
            self.core
                .pool
                .with_moves(self.key, |moves| moves.expect(at));
        }
    }

    fn begin(&mut self, candidate: Candidate, timing: &mut Timing) {
        let index = timing.attempts.len();
        timing.attempts.push(Attempt {
            transport: candidate.transport,
            address: candidate.address,
            began: timing.elapsed(),
            ended: None,
            outcome: Outcome::Overtaken,
        });
        let (core, key) = (self.core.clone(), self.key.clone());
        let address = candidate.address;
        match candidate.transport {
            Transport::Quic => {
                self.quic_attempts += 1;
                let alternative = self.alternatives.get(&address).cloned();
                self.tried_alternatives.extend(alternative.clone());
                // A connection with early data would win the race before the server has answered.
                let may_be_early = !self.is_beside_silent;
                let doubt = Doubt::new(index, self.doubts.sender.clone());
                let is_announced = !self.unannounced.contains(&address);
                self.quic.spawn(async move {
                    let place = (address, alternative);
                    let attempted = quic::attempt(&core, &key, place, may_be_early, doubt).await;
                    (index, attempted.map(|quic| quic.announced(is_announced)))
                });
            }
            Transport::Tcp => {
                self.tcp
                    .spawn(async move { (index, tcp::attempt(&core, &key, address).await) });
            }
        }
    }

    fn on_failed(&mut self, index: usize, transport: Transport, error: Error, timing: &mut Timing) {
        let attempt = &mut timing.attempts[index];
        attempt.ended = Some(timing.began.elapsed());
        attempt.outcome = Outcome::Failed(error.to_string());
        self.race.on_failed(transport);
        if transport == Transport::Quic {
            self.quic_failures += 1;
            let address = timing.attempts[index].address;
            self.failed_alternatives
                .extend(self.alternatives.get(&address).cloned());
        }
        let is_more_informative = self
            .failure
            .as_ref()
            .is_none_or(|known| rank(error.kind()) >= rank(known.kind()));
        if is_more_informative {
            self.failure = Some(error);
        }
    }

    fn on_won(&mut self, transport: Transport, established: &Established) {
        let Some(local) = established
            .facts
            .local
            .map(|local| local.ip())
            .or(self.local)
        else {
            return;
        };
        let origin = &self.key.origin;
        let is_answered = !established.facts.is_early();
        if is_answered {
            let mut memory = self.core.udp_memory();
            for failed in &self.failed_alternatives {
                memory.on_alternative_failed(Instant::now(), local, (origin, failed));
            }
            if let Some(alternative) = &established.facts.alternative {
                memory.on_alternative_worked(local, origin, alternative);
            }
        }
        match transport {
            // In early data, the server has not answered yet.
            Transport::Quic if !is_answered => {}
            Transport::Quic => self.core.udp_memory().on_worked(local, origin),
            Transport::Tcp if self.quic_attempts == 0 => {}
            Transport::Tcp if self.quic_failures == self.quic_attempts => {
                self.core
                    .udp_memory()
                    .on_failed(Instant::now(), local, origin);
            }
            Transport::Tcp => {
                let quic = std::mem::take(&mut self.quic);
                let alternatives = std::mem::take(&mut self.tried_alternatives);
                self.core.spawn_in_background(late::await_quic(
                    self.core.clone(),
                    self.key.clone(),
                    local,
                    (quic, alternatives),
                ));
            }
        }
    }
}

/// Returns the local address that the system would use, which identifies the network.
pub(super) fn local_address_for(peer: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns the rank of a failure. Failures of a reachable server are reported first.
const fn rank(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Certificate => 5,
        ErrorKind::Tls => 4,
        ErrorKind::Proxy | ErrorKind::Socks | ErrorKind::Config | ErrorKind::Bind => 3,
        ErrorKind::Connect => 2,
        ErrorKind::ConnectQuic => 1,
        _ => 0,
    }
}

/// Returns a time in the far future, to wait only for attempts in progress.
fn no_deadline() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}
