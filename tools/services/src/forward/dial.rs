//! Connections to targets over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use courser::masque::ProxyError;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Connects to the first of these addresses that answers, all of which were judged. Families take turns, and the next
/// address is tried 250 ms after the one before (RFC 8305 §5), or at once if that has failed.
///
/// # Errors
/// Returns the error of the address that failed last, and its reason for logs.
pub(super) async fn dial(
    addresses: Vec<SocketAddr>,
    within: Duration,
) -> Result<(TcpStream, SocketAddr), (ProxyError, String)> {
    let deadline = Instant::now() + within;
    let mut waiting = interleaved(addresses).into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = (ProxyError::DnsError, "the name has no address".to_owned());
    let mut next = Instant::now();
    loop {
        if Instant::now() >= next
            && let Some(address) = waiting.next()
        {
            attempts.spawn(async move { (address, TcpStream::connect(address).await) });
            next = Instant::now() + ATTEMPT_DELAY;
            continue;
        }
        let has_more = waiting.len() > 0;
        if attempts.is_empty() && !has_more {
            return Err(failure);
        }
        tokio::select! {
            Some(Ok((address, connected))) = attempts.join_next() => match connected {
                Ok(stream) => {
                    // Small writes of the client must not wait. If this fails, they are only slower.
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, address));
                }
                Err(error) => {
                    failure = failure_of(&error, address);
                    next = Instant::now();
                }
            },
            () = sleep_until(next), if has_more => {}
            () = sleep_until(deadline) => {
                let reason = format!("no address answers within {} s", within.as_secs_f64());
                return Err((ProxyError::ConnectionTimeout, reason));
            }
        }
    }
}

/// Returns the addresses with both families in turn, beginning with the family of the first.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v4_first = addresses.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv4() == is_v4_first);
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let before = all.len();
        all.extend(first.next());
        all.extend(second.next());
        if all.len() == before {
            return all;
        }
    }
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts
            .iter()
            .map(|it| it.parse().expect("an address"))
            .collect()
    }

    #[test]
    fn families_take_turns() {
        let all = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let expected = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(interleaved(all), expected);
        assert!(interleaved(Vec::new()).is_empty());
    }

    #[tokio::test]
    async fn addresses_that_refuse_are_followed_by_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let open = listener.local_addr().expect("bound");
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let closed_at = closed.local_addr().expect("bound");
        drop(closed);
        let limit = Duration::from_secs(20);
        let (_stream, address) = dial(vec![closed_at, open], limit)
            .await
            .expect("one is open");
        assert_eq!(address, open);
        let (error, reason) = dial(vec![closed_at], limit).await.expect_err("closed");
        assert_eq!(error, ProxyError::ConnectionRefused);
        assert!(reason.contains(&closed_at.to_string()), "{reason}");
        assert!(dial(Vec::new(), limit).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn address_that_is_silent_does_not_delay_the_next_for_long() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = listener.local_addr().expect("bound");
        // Packets to addresses for documentation get no answer, or an error at once.
        let silent = "192.0.2.1:9".parse().expect("an address");
        let began = Instant::now();
        let connected = dial(vec![silent, open], Duration::from_secs(10)).await;
        let (_stream, address) = connected.expect("one is open");
        assert_eq!(address, open);
        assert!(began.elapsed() <= ATTEMPT_DELAY + Duration::from_millis(100));
    }
}
