//! The clients of a proxy, and their tunnels.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser_base::Mutex;
use courser_http3_tokio::Code;
use courser_masque::Limits;
use courser_masque::request::Refusal;
use http::header::PROXY_AUTHENTICATE;
use http::{HeaderValue, StatusCode};

use crate::ended::Ended;
use crate::tunnel::Tunnel;

/// A client of a proxy, as its [authentication](crate::UdpProxy::authenticate) names it. Its tunnels are counted together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Client(Arc<str>);

impl Client {
    /// Creates a client with a name, such as the one of its account.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the client at an address: for IPv6, those of its network of 64 bits.
    pub fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::new(&v4.to_string()),
            IpAddr::V6(v6) => {
                let network = u128::from(v6) >> 64 << 64;
                Self::new(&std::net::Ipv6Addr::from(network).to_string())
            }
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The reason why a request is not from a client of the proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied(Option<HeaderValue>);

impl Denied {
    /// The request lacks valid credentials: 407 with a challenge, for example `Bearer` or `Basic realm="proxy"` (RFC
    /// 9110 §11.7.1). A challenge that is no valid field becomes `Bearer`.
    pub fn challenge(challenge: &str) -> Self {
        let value = HeaderValue::try_from(challenge);
        Self(Some(value.unwrap_or(HeaderValue::from_static("Bearer"))))
    }

    /// The client is known, and may not use the proxy: 403.
    pub const fn forbidden() -> Self {
        Self(None)
    }

    pub(crate) fn into_refusal(self) -> Refusal {
        match self.0 {
            Some(challenge) => {
                let status = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
                let mut refusal = Refusal::new(status, "the client is not authenticated");
                refusal.headers.insert(PROXY_AUTHENTICATE, challenge);
                refusal
            }
            None => Refusal::new(StatusCode::FORBIDDEN, "the client may not use the proxy"),
        }
    }
}

/// The open tunnels of a proxy.
#[derive(Debug, Default)]
pub(crate) struct Table {
    counts: Mutex<Counts>,
    descriptors: OnceLock<usize>,
    tunnels: Mutex<Tunnels>,
    /// Milliseconds without a packet after which tunnels end because the proxy wants to end, or 0. Tunnels look at it
    /// whenever they have nothing to do.
    draining_ms: AtomicU64,
}

/// The tunnels that run, to end them.
#[derive(Debug, Default)]
struct Tunnels {
    is_closed: bool,
    running: HashMap<u64, Tunnel>,
    next: u64,
}

#[derive(Debug, Default)]
struct Counts {
    open: usize,
    descriptors: usize,
    by_client: HashMap<Client, usize>,
}

/// The reason why there is no room for a tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    Client,
    Proxy,
    /// The proxy has ended.
    Closed,
}

impl Table {
    /// Admits a tunnel of a client that uses these file descriptors; `None` is a client without a name, whose tunnels
    /// count in all only.
    pub(crate) fn admit(
        self: &Arc<Self>,
        client: Option<Client>,
        descriptors: usize,
        limits: &Limits,
    ) -> Result<Permit, Full> {
        let most = *self
            .descriptors
            .get_or_init(|| available_descriptors().unwrap_or(usize::MAX));
        if self.tunnels.lock().is_closed {
            return Err(Full::Closed);
        }
        let mut counts = self.counts.lock();
        if counts.open >= limits.tunnels || counts.descriptors + descriptors > most {
            return Err(Full::Proxy);
        }
        if let Some(client) = &client {
            let count = counts.by_client.get(client).copied().unwrap_or(0);
            if count >= limits.tunnels_per_client {
                return Err(Full::Client);
            }
            counts.by_client.insert(client.clone(), count + 1);
        }
        counts.open += 1;
        counts.descriptors += descriptors;
        drop(counts);
        Ok(Permit {
            table: self.clone(),
            client,
            descriptors,
            running: OnceLock::new(),
        })
    }

    pub(crate) fn open(&self) -> usize {
        self.counts.lock().open
    }

    /// Ends the tunnels that are idle, and others once they are.
    pub(crate) fn drain(&self, idle: Duration) {
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        self.draining_ms.store(idle_ms.max(1), Relaxed);
        let running: Vec<_> = self.tunnels.lock().running.values().cloned().collect();
        // Each looks at its time then.
        running.iter().for_each(Tunnel::wake_receiver);
    }

    /// Ends all tunnels, and admits no others. One that is being opened ends when it starts.
    pub(crate) fn close(&self) {
        let mut tunnels = self.tunnels.lock();
        tunnels.is_closed = true;
        let running: Vec<_> = tunnels.running.values().cloned().collect();
        drop(tunnels);
        running.iter().for_each(cut);
    }
}

/// Ends a tunnel because the proxy ends.
fn cut(tunnel: &Tunnel) {
    tunnel.abort(Ended::Closed, Code::CONNECT_ERROR);
}

/// A tunnel that is counted until this is dropped, from [`Gate::admit`](crate::Gate::admit).
#[derive(Debug)]
#[must_use = "the tunnel is counted until this is dropped"]
pub struct Permit {
    table: Arc<Table>,
    client: Option<Client>,
    descriptors: usize,
    /// The number of the tunnel, once it runs.
    running: OnceLock<u64>,
}

impl Permit {
    /// Ends the tunnel with the proxy.
    pub(crate) fn on_started(&self, tunnel: &Tunnel) {
        let mut tunnels = self.table.tunnels.lock();
        if tunnels.is_closed {
            drop(tunnels);
            return cut(tunnel);
        }
        let number = tunnels.next;
        if self.running.set(number).is_ok() {
            tunnels.next += 1;
            tunnels.running.insert(number, tunnel.clone());
        }
    }

    /// Returns the time without a packet after which the tunnel ends, because the proxy wants to end.
    pub(crate) fn draining(&self) -> Option<Duration> {
        match self.table.draining_ms.load(Relaxed) {
            0 => None,
            idle_ms => Some(Duration::from_millis(idle_ms)),
        }
    }

    /// Returns the client, or `None` for one without a name.
    pub const fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(number) = self.running.get() {
            self.table.tunnels.lock().running.remove(number);
        }
        let mut counts = self.table.counts.lock();
        counts.open -= 1;
        counts.descriptors -= self.descriptors;
        if let Some(client) = &self.client
            && let Some(count) = counts.by_client.get_mut(client)
        {
            *count -= 1;
            if *count == 0 {
                counts.by_client.remove(client);
            }
        }
    }
}

/// Returns nine tenths of the file descriptors that are free, if the system reports its limit (limit K621).
fn available_descriptors() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let soft: usize = line.split_whitespace().next()?.parse().ok()?;
    // Sockets that listen, logs and the runtime have some.
    let used = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    Some(soft.saturating_sub(used) / PARTS * TUNNEL_PARTS)
}

/// Parts of the file descriptors, and those that tunnels may use (limit K621).
const PARTS: usize = 10;
const TUNNEL_PARTS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K621, attack A353.
    #[test]
    fn tunnels_are_counted_by_client_and_in_all() {
        let table = Arc::new(Table::default());
        let limits = Limits {
            tunnels_per_client: 2,
            tunnels: 3,
            ..Limits::default()
        };
        let (alice, bob) = (Some(Client::new("alice")), Some(Client::new("bob")));
        let first = table.admit(alice.clone(), 1, &limits).expect("room");
        let _second = table.admit(alice.clone(), 1, &limits).expect("room");
        assert_eq!(
            table.admit(alice.clone(), 1, &limits).err(),
            Some(Full::Client)
        );
        let _third = table.admit(bob.clone(), 1, &limits).expect("room");
        assert_eq!(
            table.admit(bob.clone(), 1, &limits).err(),
            Some(Full::Proxy)
        );
        assert_eq!(table.admit(None, 1, &limits).err(), Some(Full::Proxy));
        drop(first);
        assert_eq!(table.open(), 2);
        let _fourth = table.admit(None, 1, &limits).expect("room");
        assert_eq!(table.counts.lock().by_client.len(), 2);
    }

    /// Limit K621, attack A353: a tunnel over HTTP/1.1 has a connection of its own beside its socket.
    #[test]
    fn tunnels_are_counted_by_their_descriptors() {
        let table = Arc::new(Table {
            descriptors: OnceLock::from(5),
            ..Table::default()
        });
        let limits = Limits::default();
        let two = table.admit(None, 2, &limits).expect("room");
        let _three = [2, 1].map(|needed| table.admit(None, needed, &limits).expect("room"));
        assert_eq!(table.admit(None, 1, &limits).err(), Some(Full::Proxy));
        drop(two);
        let _two = table.admit(None, 2, &limits).expect("room again");
        assert_eq!(table.open(), 3);
    }

    #[test]
    fn clients_without_a_tunnel_take_no_memory() {
        let table = Arc::new(Table::default());
        let limits = Limits {
            tunnels_per_client: 0,
            ..Limits::default()
        };
        for number in 0..100 {
            let client = Some(Client::new(&number.to_string()));
            assert_eq!(table.admit(client, 1, &limits).err(), Some(Full::Client));
        }
        assert!(table.counts.lock().by_client.is_empty());
    }

    #[test]
    fn clients_that_have_left_take_no_memory() {
        let table = Arc::new(Table::default());
        for number in 0..1000 {
            let client = Some(Client::new(&number.to_string()));
            drop(table.admit(client, 1, &Limits::default()).expect("room"));
        }
        assert!(table.counts.lock().by_client.is_empty());
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let at = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::2"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
