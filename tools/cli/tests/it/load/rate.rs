//! Fixed rates, which reveal delays that a closed loop hides.

use std::time::Duration;

use super::report;
use super::servers::{App, Server};
use crate::common::number;

#[test]
fn rate_is_kept() {
    for (server, flag) in [
        (Server::http3(App::default()), "--h3"),
        (Server::tls(App::default()), "--h2"),
    ] {
        let url = server.https("/");
        let report = report(&[
            "-q", "200", "-D", "2", "-c", "2", "-m", "20", flag, "-k", &url,
        ]);
        // The number of requests is exact.
        let sent = number(&report, "requests.started");
        assert!(
            (390.0..=400.0).contains(&sent),
            "{flag}: {sent}: {report:#}"
        );
        assert_eq!(report["requests"]["asked"], 400);
    }
}

#[test]
fn rate_of_each_connection_adds_up() {
    let server = Server::http3(App::default());
    let url = server.https("/");
    let report = report(&[
        "--rps", "50", "-D", "1", "-c", "3", "-m", "10", "--h3", "-k", &url,
    ]);
    let sent = number(&report, "requests.started");
    assert!((140.0..=150.0).contains(&sent), "{sent}");
}

/// A server that stalls for a second delays every request that is due during the stall. A generator that waits
/// for it would measure one slow request.
#[test]
fn stall_shows_in_the_corrected_percentiles() {
    let load = |flags: &[&str]| {
        let app = App {
            stall: Some((Duration::from_secs(1), Duration::from_secs(1))),
            ..App::default()
        };
        let server = Server::http3(app);
        let url = server.https("/");
        // One request at a time, 100 per second for three seconds: a third of them is due during the stall.
        report(&[&["-q", "100", "-D", "3", "--h3", "-k", &url], flags].concat())
    };
    let corrected = load(&[]);
    let p75 = number(&corrected, "latencyPercentiles.p75");
    let p90 = number(&corrected, "latencyPercentiles.p90");
    assert!(p75 > 0.1 && p90 > 0.4, "{corrected:#}");
    assert!(number(&corrected, "latency.max") > 0.8, "{corrected:#}");
    // Measured from sending, all but one were fast, as far as the machine allows.
    let from_sent = number(&corrected, "latencyFromSent.p95");
    assert!(from_sent < p75 / 2.0, "{corrected:#}");
    let sent = number(&corrected, "requests.started");
    assert!(
        sent > 250.0,
        "requests that were due late must still be sent: {sent}"
    );
    let hidden = load(&["--no-latency-correction"]);
    assert!(
        number(&hidden, "latencyPercentiles.p95") < p75,
        "{hidden:#}"
    );
    assert!(number(&hidden, "latency.max") > 0.8, "{hidden:#}");
}
