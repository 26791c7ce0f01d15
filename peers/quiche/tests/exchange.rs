//! The program against itself: both ends, as the runner starts them.

mod identity;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use peers_common::{ClientResult, Failure, Ready, ServerResult};

use crate::identity::identity;

type Result<T = ()> = std::result::Result<T, Failure>;

#[test]
fn both_ends_count_what_was_asked_for() -> Result {
    let folder = identity("count")?;
    // More in flight than the server lets, and over several connections.
    for (count, in_flight, connections, bytes) in [
        (1000, 1, 1, 1),
        (1000, 300, 1, 3),
        (999, 10, 8, 70_000),
        (1, 1, 1, 20_000_000),
        (5, 8, 3, 0),
    ] {
        let server = Server::start(&folder)?;
        let work = format!(
            "--scenario http --count {count} --in-flight {in_flight} \
             --connections {connections} --bytes {bytes}"
        );
        let output = server.ask(&folder, &work)?;
        assert!(output.status.success(), "{work}: {output:?}");
        let client: ClientResult = serde_json::from_slice(&output.stdout)?;
        assert_eq!(
            (client.count, client.bytes),
            (count, count * bytes),
            "{work}"
        );
        let latency = client.latency.ok_or("no latency")?;
        assert!(
            latency.p50_us > 0.0 && latency.p50_us <= latency.p99_us,
            "{work}"
        );
        let server = server.stop()?;
        assert_eq!(
            (server.answers, server.sent),
            (count, count * bytes),
            "{work}"
        );
        assert_eq!(server.connections, connections, "{work}");
        assert_eq!(server.version, peer_quiche::version());
    }
    Ok(fs::remove_dir_all(folder)?)
}

#[test]
fn datagrams_of_every_size_go_through() -> Result {
    let folder = identity("sizes")?;
    for size in ["--datagram 1200", "--datagram 9000", "--own-settings"] {
        let server = Server::start(&folder)?;
        let work = format!("--scenario http --count 2 --bytes 5000000 {size}");
        let output = server.ask(&folder, &work)?;
        assert!(output.status.success(), "{size}: {output:?}");
        assert_eq!(server.stop()?.sent, 10_000_000, "{size}");
    }
    Ok(fs::remove_dir_all(folder)?)
}

#[test]
fn another_certificate_is_refused() -> Result {
    let (ours, other) = (identity("ours")?, identity("other")?);
    let server = Server::start(&ours)?;
    let output = server.ask(&other, "--scenario http --count 1 --bytes 1")?;
    assert!(!output.status.success(), "{output:?}");
    let result = server.stop()?;
    assert_eq!((result.connections, result.answers), (0, 0));
    fs::remove_dir_all(ours)?;
    Ok(fs::remove_dir_all(other)?)
}

#[test]
fn other_work_is_refused() -> Result {
    let output = program("client --identity . --server 127.0.0.1:1 --scenario up").output();
    let output = output?;
    assert!(!output.status.success(), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("HTTP alone, not Up"), "{error}");
    Ok(())
}

struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Result<Self> {
        let mut child = program("server --streams 100 --identity")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let ready: Ready = serde_json::from_str(&line)?;
        Ok(Self {
            child,
            output,
            address: ready.listening.to_string(),
        })
    }

    fn ask(&self, folder: &Path, work: &str) -> Result<Output> {
        let mut client = program("client --identity");
        client.arg(folder).args(["--server", &self.address]);
        Ok(client.args(work.split_whitespace()).output()?)
    }

    /// Ends its standard input, and reads its counts.
    fn stop(mut self) -> Result<ServerResult> {
        drop(self.child.stdin.take());
        let mut counts = String::new();
        self.output.read_to_string(&mut counts)?;
        assert!(self.child.wait()?.success());
        Ok(serde_json::from_str(&counts)?)
    }
}

fn program(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peer-http-quiche"));
    command.args(arguments.split(' '));
    command
}
