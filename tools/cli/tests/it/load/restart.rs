//! Servers restart during a run.

use std::net::SocketAddr;
use std::time::Duration;

use super::report;
use super::servers::{App, Server};
use crate::common::number;

// Other systems do not report the address to sockets without a peer.
#[cfg(target_os = "linux")]
#[test]
fn load_continues_after_a_restart_over_quic() {
    let server = Server::http3(App::default());
    let url = server.https("/slow/5");
    check_restart(server, Server::http3_at, &url, &["--h3", "-m", "2"]);
}

#[test]
fn load_continues_after_a_restart_over_tcp() {
    let server = Server::clear(App::default());
    let url = server.http("/slow/5");
    check_restart(server, Server::clear_at, &url, &["-c", "2"]);
}

fn check_restart(
    server: Server,
    start_at: fn(App, SocketAddr) -> Server,
    url: &str,
    flags: &[&str],
) {
    let restart = std::thread::spawn(move || {
        assert!(server.has_seen(20), "no requests");
        let first = server.seen();
        let address = server.kill();
        std::thread::sleep(Duration::from_millis(1500));
        let server = start_at(App::default(), address);
        let is_back = server.has_seen(20);
        // The client continues for a while.
        std::thread::sleep(Duration::from_secs(4));
        (first, server.seen(), is_back)
    });
    let report = report(&[&["-D", "6", "-k", url], flags].concat());
    let (first, second, is_back) = restart.join().expect("no panic");
    assert!(is_back, "no requests after the restart: {report:#}");
    assert!(number(&report, "connections.made") >= 2.0, "{report:#}");
    assert!(number(&report, "connections.lost") >= 1.0, "{report:#}");
    let errors = &report["errorDistribution"];
    assert!(
        errors.as_object().is_some_and(|errors| !errors.is_empty()),
        "{report:#}"
    );
    let done = number(&report, "requests.done");
    // The server has also received the requests in flight at its end.
    assert!(done <= (first + second) as f64, "{report:#}");
}

#[test]
fn run_with_a_number_of_requests_ends_without_the_server() {
    let server = Server::clear(App::default());
    let url = server.http("/slow/10");
    let kill = std::thread::spawn(move || {
        assert!(server.has_seen(20), "no requests");
        server.kill();
    });
    let report = report(&["-n", "30", "-k", &url]);
    kill.join().expect("no panic");
    let (done, errored) = (
        number(&report, "requests.done"),
        number(&report, "requests.errored"),
    );
    assert!(done > 0.0 && errored > 0.0, "{report:#}");
    assert!(number(&report, "connections.refused") > 0.0, "{report:#}");
}

#[test]
fn server_that_closes_every_connection_does_not_block_the_run() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
        }
    });
    let report = report(&["-n", "6", &format!("http://{address}/")]);
    assert_eq!(report["requests"]["done"], 0, "{report:#}");
    assert_eq!(report["requests"]["errored"], 6, "{report:#}");
    // A request that was not processed is repeated, at most three times.
    assert!(number(&report, "connections.made") <= 24.0, "{report:#}");
}
