//! Servers that restart during a run.

use std::time::Duration;

use super::report;
use super::servers::{App, Server};
use crate::common::number;

#[test]
fn load_goes_on_when_a_server_is_back() {
    // Other systems do not report the address to sockets without a peer.
    let over: &[bool] = if cfg!(target_os = "linux") {
        &[true, false]
    } else {
        &[false]
    };
    for &is_quic in over {
        let start = if is_quic {
            Server::http3
        } else {
            Server::clear
        };
        let start_at = if is_quic {
            Server::http3_at
        } else {
            Server::clear_at
        };
        let server = start(App::default());
        let url = if is_quic {
            server.https("/slow/5")
        } else {
            server.http("/slow/5")
        };
        let restart = std::thread::spawn(move || {
            assert!(server.has_seen(20), "the client is there");
            let first = server.seen();
            let address = server.kill();
            std::thread::sleep(Duration::from_millis(1500));
            let server = start_at(App::default(), address);
            let is_back = server.has_seen(20);
            // The client continues for a while.
            std::thread::sleep(Duration::from_secs(4));
            (first, server.seen(), is_back)
        });
        let flags: &[&str] = if is_quic {
            &["--h3", "-m", "2"]
        } else {
            &["-c", "2"]
        };
        let report = report(&[&["-D", "6", "-k", &url], flags].concat());
        let (first, second, is_back) = restart.join().expect("no panic");
        assert!(
            is_back,
            "QUIC {is_quic}: no requests after the restart: {report:#}"
        );
        assert!(
            number(&report, "connections.made") >= 2.0,
            "QUIC {is_quic}: {report:#}"
        );
        assert!(
            number(&report, "connections.lost") >= 1.0,
            "QUIC {is_quic}: {report:#}"
        );
        let errors = &report["errorDistribution"];
        assert!(
            errors.as_object().is_some_and(|errors| !errors.is_empty()),
            "QUIC {is_quic}: {report:#}"
        );
        let done = number(&report, "requests.done");
        // The server has also received the requests in flight at its end.
        assert!(done <= (first + second) as f64, "QUIC {is_quic}");
    }
}

#[test]
fn run_of_so_many_requests_ends_although_the_server_is_gone() {
    let server = Server::clear(App::default());
    let url = server.http("/slow/10");
    let kill = std::thread::spawn(move || {
        assert!(server.has_seen(20), "the client is there");
        server.kill();
    });
    let report = report(&["-n", "60", "-k", &url]);
    kill.join().expect("no panic");
    let (done, errored) = (
        number(&report, "requests.done"),
        number(&report, "requests.errored"),
    );
    assert!(done > 0.0 && errored > 0.0, "{report:#}");
    assert!(number(&report, "connections.refused") > 0.0, "{report:#}");
}

#[test]
fn server_that_only_hangs_up_does_not_hold_the_run() {
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
    // A request that was certainly not processed is sent again, at most three times.
    assert!(number(&report, "connections.made") <= 24.0, "{report:#}");
}
