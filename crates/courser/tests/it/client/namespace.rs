//! Clients on the paths of a real kernel, in a network namespace with a packet filter. The tests need root
//! and the programs `unshare`, `ip` and `nft`; without them they print SKIPPED.

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use courser::Client;
use courser::client::{ErrorKind, HttpVersion, Outcome};
use http::{Request, Version};

use super::background::announcing;
use super::server::{Protocols, Server, echo};
use super::{builder, text, timing};

/// Fails a test that hangs, see `silence`.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    crate::common::within(150, future).await
}

/// Runs this test again in a namespace of its own. Returns true there, and false in the test that waits for
/// that, or that cannot make a namespace.
fn is_inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let has_all = works("unshare", &["--net", "true"]) && works("ip", &["-V"]);
    if !has_all || !works("nft", &["--version"]) {
        eprintln!("SKIPPED client::namespace::{name}: root, unshare, ip and nft are needed");
        return false;
    }
    let test = std::env::current_exe().expect("a program");
    let inside = Command::new("unshare")
        .args([
            "--net",
            "sh",
            "-c",
            "ip link set lo up && exec \"$0\" \"$@\"",
        ])
        .arg(test)
        .args([
            &format!("client::namespace::{name}"),
            "--exact",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .expect("it has worked before");
    let output = String::from_utf8_lossy(&inside.stdout);
    let errors = String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success(), "{output}\n{errors}");
    assert!(output.contains("1 passed"), "{output}");
    false
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn run(program: &str, arguments: &str) {
    let arguments: Vec<_> = arguments.split(' ').collect();
    assert!(works(program, &arguments), "{program} {arguments:?}");
}

/// Filters datagrams to and from the server, from now on.
fn filter(server: &Server, verdict: &str) {
    run("nft", "add table inet test");
    run(
        "nft",
        "add chain inet test input { type filter hook input priority 0 ; }",
    );
    let port = server.address.port();
    run(
        "nft",
        &format!("add rule inet test input udp dport {port} {verdict}"),
    );
}

fn remove_filter() {
    run("nft", "delete table inet test");
}

fn client(server: &Server, version: HttpVersion) -> Client {
    builder(server)
        .version(version)
        .attempt_delay(Duration::from_secs(2))
        .build()
        .expect("a client")
}

async fn use_http3(client: &Client, server: &Server) {
    let version = || async {
        let response = within(client.get(server.url("/"))).await;
        response.expect("answered").version()
    };
    while version().await != Version::HTTP_3 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_after_udp_was_blocked_is_answered_over_tcp() {
    if !is_inside("request_after_udp_was_blocked_is_answered_over_tcp") {
        return;
    }
    let server = Server::start(Protocols::Both, echo()).await;
    let client = client(&server, HttpVersion::Http3);
    use_http3(&client, &server).await;
    filter(&server, "drop");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(timing(&response).retries, 1);
    remove_filter();
    use_http3(&client, &server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_udp_does_not_delay_tcp() {
    if !is_inside("rejected_udp_does_not_delay_tcp") {
        return;
    }
    for (verdict, expected) in [
        (
            "reject with icmp type port-unreachable",
            "nothing listens on udp",
        ),
        ("reject with icmp type admin-prohibited", "host unreachable"),
        (
            "reject with icmp type net-unreachable",
            "network unreachable",
        ),
    ] {
        let server = Server::start(Protocols::Both, echo()).await;
        filter(&server, verdict);
        let raced = client(&server, HttpVersion::Http3);
        let response = within(raced.get(server.url("/"))).await.expect("answered");
        assert_eq!(response.version(), Version::HTTP_2);
        let Outcome::Failed(reason) = &timing(&response).attempts[0].outcome else {
            panic!("{:?}", timing(&response).attempts);
        };
        assert!(reason.contains(expected), "{reason}");
        let alone = client(&server, HttpVersion::Http3Only);
        let error = within(alone.get(server.url("/"))).await.expect_err(verdict);
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        remove_filter();
    }
}

/// RFC 8085 §5.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_datagrams_do_not_end_an_established_connection() {
    if !is_inside("rejected_datagrams_do_not_end_an_established_connection") {
        return;
    }
    let server = Server::start(Protocols::Both, echo()).await;
    let client = client(&server, HttpVersion::Http3);
    use_http3(&client, &server).await;
    filter(&server, "reject with icmp type port-unreachable");
    let post = Request::post(server.url("/")).body("content".to_owned());
    let post = client.send(post.expect("a request"));
    let mut post = std::pin::pin!(within(post));
    let url = server.url("/");
    // The request is answered over TCP once the connection of the other one has been silent for a while.
    tokio::select! {
        early = &mut post => panic!("{:?}", early.map(|response| response.version())),
        other = within(client.get(&url)) => {
            assert_eq!(other.expect("answered").version(), Version::HTTP_2);
        }
    }
    remove_filter();
    let response = post.await.expect("answered");
    assert_eq!(text(response).await, "HTTP/3.0 POST /");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destination_without_a_route_is_reported_at_once() {
    if !is_inside("destination_without_a_route_is_reported_at_once") {
        return;
    }
    let server = Server::start(Protocols::Both, echo()).await;
    let to = |addresses: &[&str]| {
        let addresses: Vec<IpAddr> = addresses
            .iter()
            .map(|address| address.parse().expect("an address"))
            .collect();
        builder(&server)
            .resolve("localhost", 0, addresses)
            .attempt_delay(Duration::from_secs(2))
    };
    run("ip", "route add unreachable 198.51.100.0/24");
    for (address, expected) in [
        ("192.0.2.1", "network unreachable"),
        ("2001:db8::1", "network unreachable"),
        ("198.51.100.1", "host unreachable"),
    ] {
        let client = to(&[address]).version(HttpVersion::Http3Only);
        let client = client.build().expect("a client");
        let error = within(client.get(server.url("/")))
            .await
            .expect_err(address);
        assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
        let text = error.to_string();
        assert!(
            text.contains("cannot reach udp") && text.contains(expected),
            "{text}"
        );
    }
    // A family without a route delays neither transport.
    let addresses = ["2001:db8::1", "192.0.2.1", "127.0.0.1"];
    for version in [
        HttpVersion::Http3Only,
        HttpVersion::Http3,
        HttpVersion::Http2,
    ] {
        let client = to(&addresses).version(version).build().expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        let (attempts, won) = (&timing(&response).attempts, Outcome::Won);
        let of_winner = attempts.iter().find(|attempt| attempt.outcome == won);
        let transport = of_winner.expect("a winner").transport;
        let mut of_lane = attempts
            .iter()
            .filter(|attempt| attempt.transport == transport);
        for _ in 0..2 {
            let attempt = of_lane.next().expect("three addresses");
            assert!(
                matches!(attempt.outcome, Outcome::Failed(_)),
                "{attempts:?}"
            );
        }
    }
}

/// Marks the process inside the namespace.
const INSIDE: &str = "COURSER_TEST_NAMESPACE";

/// The TCP connection over which HTTP/3 was announced is still open, so nobody waits for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_requests_return_to_the_open_connection_when_udp_is_blocked() {
    if !is_inside("moved_requests_return_to_the_open_connection_when_udp_is_blocked") {
        return;
    }
    let announce = |_| Some("h3=\":PORT\"; ma=60".to_owned());
    let server = announcing(Protocols::Both, announce).await;
    let client = builder(&server).build().expect("a client");
    use_http3(&client, &server).await;
    assert_eq!(server.connections.counts(), (1, 1));
    filter(&server, "drop");
    let began = std::time::Instant::now();
    let response = within(client.get(server.url("/"))).await;
    let response = response.expect("answered");
    assert_eq!(response.version(), Version::HTTP_2);
    assert!(timing(&response).is_reused);
    // Three probe timeouts make the path silent.
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    for _ in 0..20 {
        let response = within(client.get(server.url("/"))).await;
        assert_eq!(response.expect("answered").version(), Version::HTTP_2);
    }
    assert_eq!(server.connections.counts(), (1, 1));
    // The path that has recovered is preferred again.
    remove_filter();
    use_http3(&client, &server).await;
    assert_eq!(server.connections.counts().1, 1);
}

/// A server that is restarted refuses connections for a moment. A request on its old connection, which nobody
/// answers any more, asks for another one until then, and does not wait for the idle timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_at_the_time_of_a_restart_is_answered_soon_after() {
    if !is_inside("request_at_the_time_of_a_restart_is_answered_soon_after") {
        return;
    }
    let server = Server::start(Protocols::Both, echo()).await;
    let client = client(&server, HttpVersion::Http3);
    use_http3(&client, &server).await;
    let port = server.address.port();
    filter(&server, "reject with icmp type port-unreachable");
    for rule in [
        format!("tcp dport {port} reject with tcp reset"),
        // The farewell of the old server, which one that crashes would not send.
        format!("udp sport {port} drop"),
    ] {
        run("nft", &format!("add rule inet test input {rule}"));
    }
    let (cloned, url) = (client.clone(), server.url("/"));
    let request = crate::common::spawn(async move { cloned.get(&url).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restart(Protocols::Both).await;
    let began = std::time::Instant::now();
    remove_filter();
    let response = within(request).await.expect("no panic").expect("answered");
    assert_eq!(timing(&response).retries, 1);
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
}
