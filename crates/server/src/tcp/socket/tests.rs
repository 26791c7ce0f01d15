use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::limits::Limits;
use crate::limits::reading::{Arrears, ReadRate};
use crate::limits::shares::Shares;
use crate::phase::{Conductor, Phase};

/// A peer that may take any time.
const PATIENT: ReaderPace = ReaderPace {
    patience: None,
    arrears: None,
};

/// Returns a socket of the server, and its peer.
async fn pair(conductor: &Conductor) -> (Socket, TcpStream) {
    pair_with(conductor, PATIENT).await
}

async fn pair_with(conductor: &Conductor, pace: ReaderPace) -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let shares = Shares::new(&Limits::default());
    let share = shares.take(address.ip(), true).expect("room for one");
    let (stream, _) = accepted.expect("a connection");
    let cut = conductor.part().will_reach(Phase::Cut);
    let socket = Socket::new(stream, Arc::default(), cut, pace, share);
    (socket, peer.expect("a connection"))
}

const LEN: usize = 300_000;

/// RFC 9112 §9.6: sent data arrives even if data from the peer was not read.
#[tokio::test]
async fn bytes_written_before_the_end_arrive() {
    let conductor = Conductor::new();
    let (mut socket, mut peer) = pair(&conductor).await;
    peer.write_all(b"nobody reads this").await.expect("open");
    let saying = async move {
        socket.write_all(&[7; LEN]).await.expect("open");
        socket.shutdown().await.expect("said");
        drop(socket);
    };
    let hearing = async move {
        // All of it waits here when the server has closed.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).await.map(|_| heard.len())
    };
    let ((), heard) = tokio::join!(saying, hearing);
    assert_eq!(heard.expect("no reset"), LEN);
}

#[tokio::test]
async fn a_peer_that_never_ends_is_not_waited_for() {
    let conductor = Conductor::new();
    let (mut socket, peer) = pair(&conductor).await;
    let began = std::time::Instant::now();
    socket.shutdown().await.expect("said");
    assert!((LINGER..2 * LINGER).contains(&began.elapsed()));
    drop(peer);
}

#[tokio::test]
async fn server_that_is_cut_does_not_wait_for_clients() {
    let conductor = Conductor::new();
    let (mut socket, _peer) = pair(&conductor).await;
    let began = std::time::Instant::now();
    conductor.enter(Phase::Cut);
    socket.shutdown().await.expect("said");
    assert!(began.elapsed() < LINGER);
}

/// Writes 16 MiB to a peer that reads so many bytes every ten milliseconds (attack A88, limit
/// K105).
async fn write_to(bytes: usize) -> io::Result<()> {
    let rate = ReadRate {
        bytes_per_second: 2_000_000,
        grace: Duration::from_millis(700),
    };
    let pace = ReaderPace {
        patience: Some(Duration::from_secs(30)),
        arrears: Some(Arrears::new(rate)),
    };
    let conductor = Conductor::new();
    let (mut socket, mut peer) = pair_with(&conductor, pace).await;
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
async fn peers_that_read_too_slowly_are_given_up() {
    let error = write_to(2000).await.expect_err("200 kB per second");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    write_to(1_000_000).await.expect("100 MB per second");
}

/// K206.
#[tokio::test]
async fn first_bytes_are_kept_up_to_the_limit_and_until_they_are_taken() {
    for (len, is_kept) in [(MAX_FIRST, true), (MAX_FIRST + 1, false)] {
        let conductor = Conductor::new();
        let (mut socket, mut peer) = pair(&conductor).await;
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
