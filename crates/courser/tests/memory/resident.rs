//! Resident memory of a server process with many idle connections, whose clients are in processes
//! of their own.
//!
//! ```text
//! IDLE=50000 cargo test -p courser --test memory resident::server -- --ignored --nocapture
//! ```

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use courser::{
    ClientConfig, Connection, Endpoint, Identity, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};

use super::common::{loopback, within};
use super::{FIRST, runtime, settled};

/// Connections of each process of clients, made so many at a time.
const EACH: usize = 5000;
const AT_ONCE: usize = 20;

/// Kibibytes of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.and_then(|kib| kib.parse().ok()).expect("a number")
}

fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        max_idle_timeout: Some(Duration::from_secs(3600)),
        handshake_timeout: Duration::from_secs(120),
        ..TransportConfig::default()
    })
}

/// A process of clients, and its lines.
struct Clients {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Clients {
    fn start(address: SocketAddr, count: usize, certificate: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("known"))
            .args(["--exact", "resident::clients", "--ignored", "--nocapture"])
            .env("IDLE_SERVER", format!("{address} {count} {certificate}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// Waits until all have their answers.
    async fn answered(mut self) -> Self {
        let wait = move || {
            let is_done = self.lines.any(|line| line.is_ok_and(|it| it == "answered"));
            assert!(is_done, "the clients have failed");
            self
        };
        tokio::task::spawn_blocking(wait).await.expect("no panic")
    }

    /// Lets all ask again.
    fn ask(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        stdin.write_all(b"again\n").expect("it reads");
    }

    fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[test]
#[ignore = "takes minutes with 50 000 connections"]
fn server() {
    let count: usize = std::env::var("IDLE").map_or(10_000, |it| it.parse().expect("a number"));
    let identity = Identity::dev().expect("random numbers");
    let certificate: String = identity
        .certificate()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["test"])
        .transport_config(transport());
    runtime().block_on(async {
        let endpoint = Endpoint::server(config, loopback()).expect("a port");
        let address = endpoint.local_addr().expect("bound");
        let accepting = endpoint.clone();
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                tokio::spawn(serve(incoming));
            }
        });
        let first = Clients::start(address, FIRST, &certificate)
            .answered()
            .await;
        settled().await;
        let (before, few) = (resident(), endpoint.stats().connections);
        let mut all = vec![first];
        while all.len() <= count.div_ceil(EACH) {
            all.push(Clients::start(address, EACH, &certificate).answered().await);
        }
        settled().await;
        let (after, open) = (resident(), endpoint.stats().connections);
        println!(
            "{open} connections: {after} KiB, with the first {few} {before} KiB, {} bytes each",
            (after - before) * 1024 / (open - few)
        );
        for mut clients in std::mem::take(&mut all) {
            clients.ask();
            all.push(clients.answered().await);
        }
        println!("all have answered again; {} KiB", resident());
        assert_eq!(endpoint.stats().connections, open, "none was lost");
        all.into_iter().for_each(Clients::finish);
    });
}

/// Answers requests in one task for the whole connection.
async fn serve(incoming: courser::Incoming) {
    let Ok(connection) = incoming.await else {
        return;
    };
    while let Ok((send, receive)) = connection.accept_bi().await {
        // Boxed, so that an idle connection's task has no room for a request.
        Box::pin(answer(send, receive)).await;
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) {
    if receive.read_to_end(100).await.is_ok() && send.write_all(b"answer").await.is_ok() {
        let _ = send.finish();
    }
}

/// The other end of [`server`], in a process of its own.
#[test]
#[ignore = "started by the other test"]
fn clients() {
    let Ok(server) = std::env::var("IDLE_SERVER") else {
        return;
    };
    let mut parts = server.split(' ');
    let mut next = || parts.next().expect("three parts");
    let address: SocketAddr = next().parse().expect("an address");
    let count: usize = next().parse().expect("a number");
    let hex = next().as_bytes();
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16);
    let certificate: Vec<u8> = hex
        .chunks(2)
        .map(|pair| digits(pair).expect("hex"))
        .collect();
    let config = ClientConfig::with_roots([certificate.into()])
        .expect("a certificate")
        .alpn(["test"])
        .transport_config(transport());
    runtime().block_on(async {
        let mut endpoint = Endpoint::client(loopback()).expect("a port");
        endpoint.set_default_client_config(config);
        let mut connections = Vec::new();
        while connections.len() < count {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..AT_ONCE {
                let connecting = endpoint.connect(address, "localhost").expect("configured");
                tasks.spawn(async move {
                    let connection = connecting.await.expect("handshake");
                    ask(&connection).await;
                    connection
                });
            }
            connections.extend(within(60, tasks.join_all()).await);
        }
        println!("\nanswered");
        // The timers of the connections run while this waits.
        let mut lines = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
        while let Ok(Some(Ok(_))) = (&mut lines).await {
            for connection in &connections {
                within(60, ask(connection)).await;
            }
            println!("\nanswered");
            lines = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
        }
    });
}

async fn ask(connection: &Connection) {
    let (mut send, mut receive) = connection.open_bi().await.expect("allowed");
    send.write_all(b"request").await.expect("enough credit");
    send.finish().expect("not finished");
    assert_eq!(receive.read_to_end(100).await.expect("sent"), b"answer");
}
