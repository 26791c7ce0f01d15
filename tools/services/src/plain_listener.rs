//! A listener for a forward proxy over HTTP/1.1 without TLS, for clients that do not support TLS to their proxy.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use courser::masque::Client;
use courser::server::AbsoluteTarget;
use courser_base::Mutex;
use http::header::{CONNECTION, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::body::explained;
use crate::forward::{Forward, PlainClient, prepare_stream};
use crate::plain_stream::PlainStream;

/// A listener for a [`Forward`] proxy over HTTP/1.1 without TLS.
#[derive(Debug)]
pub struct PlainListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl PlainListener {
    /// Opens a listener.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            address: socket.local_addr()?,
            listener: TcpListener::from_std(socket)?,
        })
    }

    /// Returns the address of the socket.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves clients until `end`, then finishes the requests in progress. Tunnels go on in tasks of their own. `on_failure`
    /// is called when no connection can be accepted, once until it works again.
    pub async fn serve(
        self,
        forward: Forward,
        end: impl Future<Output = ()>,
        on_failure: impl Fn(io::Error),
    ) {
        let open = Arc::new(Open::new(descriptors()));
        let (ending, is_ending) = watch::channel(false);
        let mut end = std::pin::pin!(end);
        let mut works = true;
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut end => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                // The client has left already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    if std::mem::replace(&mut works, false) {
                        on_failure(error);
                    }
                    // Connections that end meanwhile free file descriptors.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            works = true;
            // Without room, the client sees a close.
            let Some(share) = open.admit(peer.ip()) else {
                continue;
            };
            let serving = serve(stream, peer, forward.clone(), is_ending.clone());
            tokio::spawn(async move {
                serving.await;
                drop(share);
            });
        }
        drop((self.listener, is_ending));
        let _ = ending.send(true);
        // Each connection has a receiver until its end.
        ending.closed().await;
    }
}

/// Serves a connection until it ends or becomes a tunnel.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    forward: Forward,
    mut is_ending: watch::Receiver<bool>,
) {
    prepare_stream(&stream);
    let stream = PlainStream::new(stream, forward.longest_idle() + BEYOND_IDLE);
    let service = service_fn(move |request| {
        let forward = forward.clone();
        async move {
            let is_connect = *request.method() == Method::CONNECT;
            let mut response = match prepare(request, peer) {
                Ok(request) => forward.answer(request).await,
                Err(reason) => explained(StatusCode::BAD_REQUEST, reason),
            };
            if is_connect && !response.status().is_success() {
                // What follows may be of a program that the client serves, and is no request (RFC 9931 §8).
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER)
        .half_close(true);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection.with_upgrades());
    // An error of one client ends only its connection.
    tokio::select! {
        _ = &mut connection => return,
        _ = is_ending.wait_for(|it| *it) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Brings a request to the form in which the server over TLS passes it on.
fn prepare(
    mut request: Request<Incoming>,
    peer: SocketAddr,
) -> Result<Request<Incoming>, &'static str> {
    request.extensions_mut().insert(PlainClient::new(peer));
    if request.headers().get_all(HOST).iter().nth(1).is_some() {
        return Err("the request has several Host fields");
    }
    if *request.method() == Method::CONNECT {
        return Ok(request);
    }
    let uri = request.uri();
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
        let has_host = request.headers().contains_key(HOST);
        return match has_host || request.version() < Version::HTTP_11 {
            true => Ok(request),
            false => Err("the request has no Host field"),
        };
    };
    let target = AbsoluteTarget::new(scheme.clone());
    // The target overrides the field (RFC 9112 §3.2.2).
    let host =
        HeaderValue::from_str(authority.as_str()).map_err(|_| "the host is no field value")?;
    request.headers_mut().insert(HOST, host);
    request.extensions_mut().insert(target);
    Ok(request)
}

/// The open connections.
#[derive(Debug)]
struct Open {
    /// Connections at a time.
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_client: HashMap<Client, usize>,
}

impl Open {
    /// `descriptors` is the number of files that the process may open, if it is known: clients without credentials must not
    /// take those of tunnels.
    fn new(descriptors: Option<usize>) -> Self {
        let part = descriptors.map_or(usize::MAX, |all| all / DESCRIPTORS_PART);
        Self {
            most: part.clamp(1, MAX_CONNECTIONS),
            counts: Mutex::default(),
        }
    }

    fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Share> {
        let client = Client::at(address);
        let mut counts = self.counts.lock();
        let own = counts.by_client.get(&client).copied().unwrap_or_default();
        // One address may have half of what is left, so that others always find room.
        if own >= (self.most - counts.all).div_ceil(2) {
            return None;
        }
        counts.all += 1;
        *counts.by_client.entry(client.clone()).or_default() += 1;
        Some(Share {
            open: self.clone(),
            client,
        })
    }
}

/// A connection that is counted until this is dropped.
struct Share {
    open: Arc<Open>,
    client: Client,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.open.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.by_client.remove(&self.client);
            }
        }
    }
}

/// Returns the number of files that the process may open, if the system reports it.
fn descriptors() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Connections without TLS at a time, not counting those that have become tunnels (limit K648).
const MAX_CONNECTIONS: usize = 4096;
/// Part of the file descriptors of the process for them: one of so many (limit K648).
const DESCRIPTORS_PART: usize = 4;
/// Time for the header section of a request, and between requests (limit K648).
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest header section in bytes (limit K648).
const BUFFER: usize = 64 * 1024;
/// Time beyond that without a byte for a client that takes none. Tunnels end before, because they are idle.
const BEYOND_IDLE: Duration = Duration::from_secs(1);
/// Pause after a failure to accept.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit K648.
    #[test]
    fn connections_of_an_address_leave_room_for_others() {
        let open = Arc::new(Open::new(None));
        let admit = |text: &str| open.admit(text.parse().expect("an address"));
        let mut shares = Vec::new();
        while let Some(share) = admit("192.0.2.1") {
            shares.push(share);
        }
        assert_eq!(shares.len(), MAX_CONNECTIONS / 3 + 1);
        while let Some(share) = admit("192.0.2.2") {
            shares.push(share);
        }
        assert!(admit("192.0.2.3").is_some());
        shares.clear();
        assert!(open.counts.lock().by_client.is_empty());
        assert_eq!(open.counts.lock().all, 0);
    }

    /// Limit K648, attack A406: with few descriptors there are fewer connections, and at least one.
    #[test]
    fn connections_leave_descriptors_for_tunnels() {
        let count = |descriptors| {
            let open = Arc::new(Open::new(Some(descriptors)));
            let admitted = (0..=255).map_while(|last| open.admit([192, 0, 2, last].into()));
            admitted.collect::<Vec<_>>().len()
        };
        assert_eq!(count(512), 512 / DESCRIPTORS_PART);
        assert_eq!(count(1), 1);
    }
}
