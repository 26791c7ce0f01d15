//! Connection IDs for load balancers.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use courser::{ConnectionIdGenerator as _, ServerIdGenerator};

use super::running::start;
use crate::common::{self, Folder, refusal};

const KEY: &str = "8f95f09245765f80256934e50c66207f";
const IDS: &str = "# of this server\nconfig-id = 3\nserver-id = 0a0b0c\nnonce-length = 8\n";

/// Forwards datagrams between clients and a server until none arrives for two seconds. Returns the connection
/// IDs that the server has chosen.
fn forward(relay: &UdpSocket, server: SocketAddr) -> HashSet<Vec<u8>> {
    let (mut chosen, mut client, mut buffer) = (HashSet::new(), None, [0; 2048]);
    let pause = Some(Duration::from_secs(2));
    relay.set_read_timeout(pause).expect("a time");
    while let Ok((length, from)) = relay.recv_from(&mut buffer) {
        let datagram = &buffer[..length];
        if from != server {
            client = Some(from);
            relay.send_to(datagram, server).expect("sent");
            continue;
        }
        chosen.extend(source_id(datagram));
        relay
            .send_to(datagram, client.expect("a client"))
            .expect("sent");
    }
    chosen
}

/// Returns the source connection ID of a long header (RFC 8999 §5.1).
fn source_id(datagram: &[u8]) -> Option<Vec<u8>> {
    let (first, rest) = datagram.split_first()?;
    let (length, rest) = rest.get(4..)?.split_first()?;
    let (length, rest) = rest.get(usize::from(*length)..)?.split_first()?;
    let id = rest.get(..usize::from(*length))?;
    (first & 0x80 != 0).then(|| id.to_vec())
}

/// Returns the IDs of a server with this file, for two clients.
fn ids_with(file: &str) -> HashSet<Vec<u8>> {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let format = format!("quic-lb:{}", folder.file("ids", file));
    let serving = start(&folder, &["--connection-ids", &format]);
    let relay = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/", relay.local_addr().expect("bound"));
    let server = serving.address;
    let forwarding = thread::spawn(move || forward(&relay, server));
    for _ in 0..2 {
        let output = common::run(&["get", "--http3-only", "-k", &url]);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "home",
            "{output:?}"
        );
    }
    forwarding.join().expect("no panic")
}

#[test]
fn load_balancer_decodes_the_server_id() {
    let balancer = || ServerIdGenerator::new(3, &[0; 3], 8).expect("in the ranges");
    let keyed = balancer().encrypt(&key());
    for (file, balancer) in [
        (IDS.to_owned(), balancer()),
        (format!("{IDS}key = {KEY}\n"), keyed),
    ] {
        let ids = ids_with(&file);
        assert!(ids.len() >= 2, "one for each client: {ids:?}");
        for mut id in ids {
            assert_eq!(id.len(), balancer.length());
            let is_clear = id[1..4] == [0x0a, 0x0b, 0x0c];
            assert_eq!(is_clear, !file.contains("key"), "{id:?}");
            assert_eq!(balancer.open(&mut id), Some(&[0x0a, 0x0b, 0x0c][..]));
        }
    }
}

fn key() -> [u8; 16] {
    let key = u128::from_str_radix(KEY, 16);
    key.expect("hexadecimal").to_be_bytes()
}

#[test]
fn invalid_files_and_formats_are_reported_in_one_line() {
    let folder = Folder::new();
    let bad = folder.file("bad", "config-id = 3\nserver-id = xyz\n");
    let format = format!("quic-lb:{bad}");
    let serve = |format: &str| {
        refusal(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--connection-ids",
            format,
        ])
    };
    let line = serve(&format);
    let expected = format!("cannot use the QUIC-LB configuration {bad}: line 2: the value is not");
    assert!(line.contains(&expected), "{line}");
    let line = serve("quic-lb:/nowhere/ids");
    assert!(line.contains("/nowhere/ids: No such file"), "{line}");
    let line = serve("random");
    assert!(
        line.contains("'random' is not a format of connection IDs: use quic-lb:FILE"),
        "{line}"
    );
}
