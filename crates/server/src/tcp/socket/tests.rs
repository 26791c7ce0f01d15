use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::limits::Limits;
use crate::limits::buffers::CONNECTION;
use crate::limits::holders::Holders;
use crate::limits::read_monitor::{Arrears, ReadRate};
use crate::limits::shares::Shares;
use crate::phase::{Phase, Phases};
use crate::rare::Rare;

/// Sets no limits for the peer.
const UNLIMITED: ReaderPace = ReaderPace {
    longest_pause: None,
    arrears: None,
};

/// Returns a socket of the server and its peer.
async fn pair(phases: &Phases) -> (Socket, TcpStream) {
    pair_with(phases, UNLIMITED).await
}

async fn pair_with(phases: &Phases, pace: ReaderPace) -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let shares = Shares::new(&Limits::default());
    let share = shares.take(address.ip(), true).expect("a free share");
    let (stream, _) = accepted.expect("a connection");
    let cut = Rare::new(phases.part().will_reach(Phase::Cut));
    let holders = Holders::of_budget(1 << 30);
    let holder = holders.open(address.ip(), CONNECTION).expect("room");
    let buffers = ReadBuffers::new(holder, 65_536);
    let socket = Socket::new(stream, Arc::default(), cut, pace, share, buffers);
    (socket, peer.expect("a connection"))
}

const LEN: usize = 300_000;

/// RFC 9112 §9.6: sent data arrives even if data of the peer was not read.
#[tokio::test]
async fn bytes_written_before_the_end_arrive() {
    let phases = Phases::new();
    let (mut socket, mut peer) = pair(&phases).await;
    peer.write_all(b"never read").await.expect("open");
    let saying = async move {
        socket.write_all(&[7; LEN]).await.expect("open");
        socket.shutdown().await.expect("the socket is open");
        drop(socket);
    };
    let hearing = async move {
        // All of it is buffered when the server closes.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut received = Vec::new();
        peer.read_to_end(&mut received)
            .await
            .map(|_| received.len())
    };
    let ((), received) = tokio::join!(saying, hearing);
    assert_eq!(received.expect("no reset"), LEN);
}

#[tokio::test]
async fn peer_that_does_not_close_is_disconnected() {
    let phases = Phases::new();
    let (mut socket, peer) = pair(&phases).await;
    let began = std::time::Instant::now();
    socket.shutdown().await.expect("the socket is open");
    assert!((LINGER..2 * LINGER).contains(&began.elapsed()));
    drop(peer);
}

#[tokio::test]
async fn server_that_is_cut_does_not_wait_for_clients() {
    let phases = Phases::new();
    let (mut socket, _peer) = pair(&phases).await;
    let began = std::time::Instant::now();
    phases.enter(Phase::Cut);
    socket.shutdown().await.expect("the socket is open");
    assert!(began.elapsed() < LINGER);
}

/// Writes 16 MiB to a peer that reads this many bytes every ten milliseconds (attack A88, limit K105).
async fn write_to(bytes: usize) -> io::Result<()> {
    let rate = ReadRate {
        bytes_per_second: 2_000_000,
        grace: Duration::from_millis(700),
    };
    let pace = ReaderPace {
        longest_pause: Some(Duration::from_secs(30)),
        arrears: Some(Arrears::new(rate)),
    };
    let phases = Phases::new();
    let (mut socket, mut peer) = pair_with(&phases, pace).await;
    let reading = async move {
        let mut buffer = vec![0; bytes];
        while peer.read_exact(&mut buffer).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let content = vec![7; 16 << 20];
    tokio::select! {
        written = socket.write_all(&content) => written,
        () = reading => Ok(()),
    }
}

#[tokio::test]
async fn peers_that_read_too_slowly_are_disconnected() {
    let error = write_to(2000).await.expect_err("200 kB per second");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    write_to(1_000_000).await.expect("100 MB per second");
}

/// K206.
#[tokio::test]
async fn first_bytes_are_recorded_up_to_the_limit_and_until_taken() {
    for (len, is_kept) in [(MAX_FIRST, true), (MAX_FIRST + 1, false)] {
        let phases = Phases::new();
        let (mut socket, mut peer) = pair(&phases).await;
        let sent: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        let mut read = vec![0; len];
        let (written, received) = tokio::join!(peer.write_all(&sent), socket.read_exact(&mut read));
        written.expect("open");
        received.expect("open");
        let first = socket.take_first();
        assert_eq!(
            first.as_deref(),
            is_kept.then_some(&sent[..]),
            "{len} bytes"
        );
        peer.write_all(b"later").await.expect("open");
        socket.read_exact(&mut [0; 5]).await.expect("open");
        assert_eq!(socket.take_first(), None, "nothing is kept any more");
    }
}
