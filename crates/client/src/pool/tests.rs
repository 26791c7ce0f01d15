use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, DuplexStream};

use super::super::link::Proxied;
use super::super::request_body::RequestBody;
use super::super::serves::Serves;
use super::*;

/// Returns an idle HTTP/1.1 connection and its server end.
async fn connection() -> (Established, DuplexStream) {
    let (near, far) = tokio::io::duplex(1024);
    let handshake = http1::handshake::<_, RequestBody>(TokioIo::new(near));
    let (mut send, connection) = handshake.await.expect("the handshake sends nothing");
    tokio::spawn(connection);
    send.ready().await.expect("open");
    let facts = Facts {
        version: http::Version::HTTP_11,
        remote: ([127, 0, 0, 1], 443).into(),
        local: None,
        tcp_connected: None,
        tls_complete: None,
        quic_complete: None,
        is_resumed: false,
        tls: None,
        proxy: Proxied::No,
        alternative: None,
        serves: Serves::of(Origin::https("origin.test", 443)),
        was_silent: false.into(),
        is_announced: false,
        is_moved: false,
    };
    let established = Established {
        link: Link::Http1(send),
        facts: Arc::new(facts),
    };
    (established, far)
}

fn key(number: usize) -> Key {
    Key {
        origin: Origin::https(&format!("origin-{number}.test"), 443),
        proxy: None,
        address: None,
        version: HttpVersion::Auto,
    }
}

fn take_all(pool: &Pool, key: &Key) -> usize {
    std::iter::from_fn(|| pool.take(key)).count()
}

/// Limit K72.
#[tokio::test]
async fn idle_connections_are_limited() {
    let limits = Limits::default();
    let origin_of = |number: usize| key(number / limits.idle_per_origin);
    let pool = Pool::new(limits);
    let mut far_ends = Vec::new();
    for number in 0..=MAX_IDLE {
        let (established, far) = connection().await;
        pool.put_back(&origin_of(number), established);
        far_ends.push(far);
    }
    let mut last = far_ends.pop().expect("one connection above the limit");
    let mut byte = [0; 1];
    let read = tokio::time::timeout(Duration::from_secs(10), last.read(&mut byte)).await;
    let read = read.expect("the last one is closed");
    assert_eq!(read.expect("ended"), 0);
    assert_eq!(take_all(&pool, &origin_of(MAX_IDLE)), 0);
    let origins = (0..MAX_IDLE).step_by(limits.idle_per_origin);
    let all: usize = origins
        .map(|number| take_all(&pool, &origin_of(number)))
        .sum();
    assert_eq!(all, MAX_IDLE);
}

#[tokio::test]
async fn idle_connections_of_one_origin_are_limited() {
    let limits = Limits {
        idle_per_origin: 2,
        ..Limits::default()
    };
    let pool = Pool::new(limits);
    let mut far_ends = Vec::new();
    for _ in 0..3 {
        let (established, far) = connection().await;
        pool.put_back(&key(0), established);
        far_ends.push(far);
    }
    assert_eq!(take_all(&pool, &key(0)), 2);
}
