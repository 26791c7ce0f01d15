//! Connections to targets over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::masque::{Permit, ProxyError};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Connects to the first of these addresses that answers, each of which is judged when it is taken. The next address is
/// tried 250 ms after the one before (RFC 8305 §5), or at once if that has failed.
///
/// Each attempt beside another one has a socket of its own, which `another` counts for the client. Without room the next
/// address waits for the end of the attempt before.
///
/// # Errors
/// Returns the error of the address that failed last, and its reason for logs, or `None` if there was no address.
pub(super) async fn dial(
    mut addresses: impl Iterator<Item = SocketAddr>,
    within: Duration,
    another: impl Fn() -> Option<Permit>,
) -> Result<(TcpStream, SocketAddr), Option<(ProxyError, String)>> {
    let deadline = Instant::now() + within;
    let mut attempts = JoinSet::new();
    let (mut failure, mut tried) = (None, Vec::new());
    let (mut has_more, mut next) = (true, Instant::now());
    loop {
        if has_more && Instant::now() >= next {
            next = Instant::now() + ATTEMPT_DELAY;
            let permit = (!attempts.is_empty()).then(&another);
            if permit.as_ref().is_some_and(Option::is_none) {
                continue;
            }
            match addresses.next() {
                Some(address) => {
                    tried.push(address.to_string());
                    attempts.spawn(async move {
                        let _permit = permit;
                        (address, TcpStream::connect(address).await)
                    });
                }
                None => has_more = false,
            }
            continue;
        }
        if attempts.is_empty() && !has_more {
            return Err(failure);
        }
        tokio::select! {
            Some(Ok((address, connected))) = attempts.join_next() => match connected {
                Ok(stream) => {
                    prepare_stream(&stream);
                    return Ok((stream, address));
                }
                Err(error) => {
                    failure = Some(failure_of(&error, address));
                    next = Instant::now();
                }
            },
            () = sleep_until(next), if has_more => {}
            () = sleep_until(deadline) => {
                let seconds = within.as_secs_f64();
                let reason = format!("no answer from {} within {seconds} s", tried.join(", "));
                return Err(Some((ProxyError::ConnectionTimeout, reason)));
            }
        }
    }
}

/// Sets the options of a connection with a tunnel: small writes do not wait, and an end that has vanished is noticed. If this
/// fails, tunnels are slower, or end later.
pub(crate) fn prepare_stream(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

fn failure_of(error: &io::Error, address: SocketAddr) -> (ProxyError, String) {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
            ProxyError::ConnectionRefused
        }
        io::ErrorKind::TimedOut => ProxyError::ConnectionTimeout,
        io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::AddrNotAvailable => ProxyError::DestinationIpUnroutable,
        // No file descriptor or port is left.
        _ => ProxyError::ConnectionLimitReached,
    };
    (kind, format!("cannot connect to {address}: {error}"))
}

/// Time between two attempts (RFC 8305 §8, limit K646), in milliseconds.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Time without a byte after which TCP asks whether the other end is there, and the interval of these probes, as for clients
/// over TLS (limit K566).
const KEEPALIVE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use courser::masque::{Gate, Limits, Policy};
    use tokio::net::TcpListener;

    use super::*;

    /// A proxy with room for so many sockets, and the permit for the first.
    fn room(tunnels: usize) -> (Gate, Permit) {
        let limits = Limits {
            tunnels,
            ..Limits::default()
        };
        let gate = Gate::new(Policy::nothing()).open_to_all().limits(limits);
        let (parts, ()) = http::Request::new(()).into_parts();
        let permit = gate.admit(&parts).expect("room");
        (gate, permit)
    }

    #[tokio::test]
    async fn addresses_that_refuse_are_followed_by_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let open = listener.local_addr().expect("bound");
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let closed_at = closed.local_addr().expect("bound");
        drop(closed);
        let limit = Duration::from_secs(20);
        let (stream, address) = dial([closed_at, open].into_iter(), limit, || None)
            .await
            .expect("one is open");
        assert_eq!(address, open);
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().expect("an option"));
        let failed = dial([closed_at].into_iter(), limit, || None).await;
        let (error, reason) = failed.expect_err("closed").expect("tried");
        assert_eq!(error, ProxyError::ConnectionRefused);
        assert!(reason.contains(&closed_at.to_string()), "{reason}");
        assert!(matches!(
            dial([].into_iter(), limit, || None).await,
            Err(None)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn address_that_is_silent_does_not_delay_the_next_for_long() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = listener.local_addr().expect("bound");
        // Packets to addresses for documentation get no answer, or an error at once.
        let silent = "192.0.2.1:9".parse().expect("an address");
        let began = Instant::now();
        let (gate, permit) = room(2);
        let another = || gate.another(&permit);
        let addresses = [silent, open].into_iter();
        let connected = dial(addresses, Duration::from_secs(10), another).await;
        let (_stream, address) = connected.expect("one is open");
        assert_eq!(address, open);
        assert!(began.elapsed() <= ATTEMPT_DELAY + Duration::from_millis(100));
    }

    /// Attack A406: sockets for addresses that do not answer count for their client.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn attempts_beside_another_need_room() {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket
            .bind(([127, 0, 0, 1], 0).into())
            .expect("a free port");
        let full = socket.listen(1).expect("a listener");
        let silent = full.local_addr().expect("bound");
        // Beyond these, the system drops packets that open a connection.
        let mut waiting = Vec::new();
        while let Ok(connected) =
            tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(silent)).await
        {
            waiting.push(connected);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let open = listener.local_addr().expect("bound");
        let (gate, permit) = room(2);
        let limit = Duration::from_secs(1);
        let other = gate.another(&permit).expect("room");
        let refused = dial([silent, open].into_iter(), limit, || gate.another(&permit)).await;
        assert_eq!(
            refused
                .expect_err("no room")
                .expect("an address was tried")
                .0,
            ProxyError::ConnectionTimeout
        );
        drop(other);
        let (_, address) = dial([silent, open].into_iter(), limit, || gate.another(&permit))
            .await
            .expect("room");
        assert_eq!(address, open);
        while gate.open() > 1 {
            // The attempt that was overtaken.
            tokio::task::yield_now().await;
        }
    }
}
