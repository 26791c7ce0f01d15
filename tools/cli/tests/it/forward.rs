//! `courser proxy`, with `courser get`, `courser perf` and raw bytes as its clients.

mod hostile;
#[cfg(target_os = "linux")]
mod namespaces;
mod raw;

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use self::raw::{Target, connect, request};
use crate::common::{Folder, Server, refusal, run};
use crate::serve::serving::Serving;
use crate::serve::tls::certificate_for;

/// A forward proxy in its own process, with an address without TLS and a log.
struct Proxy {
    serving: Serving,
    /// The port without TLS.
    plain: u16,
}

impl Proxy {
    fn start(flags: &[&str]) -> Self {
        Self::start_in(Folder::new(), flags)
    }

    fn start_in(folder: Folder, flags: &[&str]) -> Self {
        let common = [
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "--plain",
            "127.0.0.1:0",
            "--json",
            "--access-log=json",
        ];
        let serving = Serving::run(&[&common[..], flags].concat(), folder);
        let plain = serving.announced["proxy"]["plain"][0]
            .as_str()
            .expect("a URL");
        let (_, port) = plain.rsplit_once(':').expect("a port");
        Self {
            plain: port.parse().expect("a port"),
            serving,
        }
    }

    /// A proxy that reaches this machine.
    fn local(flags: &[&str]) -> Self {
        Self::start(&[&["--allow", "127.0.0.0/8"], flags].concat())
    }

    fn port(&self) -> u16 {
        self.serving.address.port()
    }

    /// Returns the next line of the access log.
    fn logged(&mut self) -> Value {
        loop {
            let line = self.serving.next_event();
            if line.get("event").is_none() {
                return line;
            }
        }
    }

    /// Transfers a URL through the proxy, and returns what was written: the version and the status.
    fn get(&self, scheme: &str, url: &str, flags: &[&str]) -> Output {
        let proxy = format!("{scheme}://127.0.0.1:{}", self.port());
        let common = [
            "get",
            "--silent",
            "--show-error",
            "--insecure",
            "--proxy-insecure",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_version} %{response_code}",
            "--proxy",
            &proxy,
        ];
        run(&[&common[..], flags, &[url]].concat())
    }
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn servers_are_reached_over_every_version() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let mut proxy = Proxy::local(&[]);
    for (scheme, flag, version, method, outer) in [
        ("masque", "--http3-only", "3", "CONNECT-UDP", "HTTP/3.0"),
        ("masque", "--http3", "3", "CONNECT-UDP", "HTTP/3.0"),
        ("masque", "--http2", "2", "CONNECT", "HTTP/3.0"),
        ("masque", "--http1.1", "1.1", "CONNECT", "HTTP/3.0"),
        ("https", "--http2", "2", "CONNECT", "HTTP/1.1"),
        ("https", "--http1.1", "1.1", "CONNECT", "HTTP/1.1"),
    ] {
        let (out, error) = text(&proxy.get(scheme, &url, &[flag]));
        assert_eq!(out, format!("{version} 200"), "{scheme} {flag}: {error}");
        let line = proxy.logged();
        assert_eq!(line["method"], method, "{line}");
        assert_eq!(line["protocol"], outer, "{line}");
        assert_eq!(line["status"], 200, "{line}");
        assert_eq!(line["address"], site.address.to_string(), "{line}");
        let passed = |name: &str| line[name].as_u64().expect("a number");
        assert!(passed("bytes_to_target") > 500, "{line}");
        assert!(passed("bytes_from_target") > 500, "{line}");
        assert!(
            ["finished", "client"].contains(&line["end"].as_str().expect("an end")),
            "{line}"
        );
    }
}

/// `--insecure` concerns servers: the credentials for a proxy go to the proxy only.
#[test]
fn insecure_servers_do_not_make_proxies_trusted() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let proxy = Proxy::local(&[]);
    for scheme in ["https", "masque"] {
        let address = format!("{scheme}://127.0.0.1:{}", proxy.port());
        let output = run(&["get", "--insecure", "--proxy", &address, &url]);
        let (out, error) = text(&output);
        assert_eq!(output.status.code(), Some(60), "{scheme}: {out}{error}");
        let helps = "pass --proxy-cacert FILE or --proxy-insecure";
        assert!(error.contains(helps), "{scheme}: {error}");
    }
}

/// A certificate is for servers or for proxies: neither learns who the client is to the other.
#[test]
fn proxies_get_their_own_client_certificate() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let folder = Folder::new();
    let ours = certificate_for(&folder, "client");
    let shown = ["--proxy-cert", &ours.cert, "--proxy-key", &ours.key];
    let of_servers = ["--cert", &ours.cert, "--key", &ours.key];
    let proxy = Proxy::local(&["--client-ca", &ours.cert]);
    for scheme in ["https", "masque"] {
        let (out, error) = text(&proxy.get(scheme, &url, &shown));
        assert!(out.ends_with(" 200"), "{scheme}: {out} {error}");
        let (out, error) = text(&proxy.get(scheme, &url, &of_servers));
        assert!(out.ends_with(" 000"), "{scheme}: {out} {error}");
    }
    let failed = run(&["get", "--proxy-key", &ours.key, &url]);
    let (_, error) = text(&failed);
    assert!(error.contains("--proxy-cert"), "{error}");
}

/// The proxy refuses CONNECT-UDP, and the client says so.
#[test]
fn client_falls_back_to_connect() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let mut proxy = Proxy::local(&["--tcp"]);
    let output = proxy.get("masque", &url, &["--http3", "--verbose"]);
    let (out, error) = text(&output);
    assert_eq!(out, "2 200", "{error}");
    assert!(error.contains("refused CONNECT-UDP"), "{error}");
    let mut methods = [proxy.logged(), proxy.logged()].map(|it| it["method"].to_string());
    methods.sort();
    assert_eq!(methods, ["\"CONNECT\"", "\"CONNECT-UDP\""]);
    let (_, error) = text(&proxy.get("masque", &url, &["--http3-only"]));
    assert!(
        error.contains("refused CONNECT-UDP") && error.contains("501"),
        "{error}"
    );
}

/// A proxy over TCP alone is used as one with the scheme https.
#[test]
fn proxy_without_quic_is_reached_over_tcp() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let proxy = Proxy::local(&["--no-quic"]);
    let (out, error) = text(&proxy.get("masque", &url, &["--http2"]));
    assert_eq!(out, "2 200", "{error}");
}

/// A client goes on through a proxy that was restarted, without waiting for the timeouts of what was lost.
#[tokio::test(flavor = "multi_thread")]
async fn proxy_that_was_restarted_is_used_again() {
    let site = Serving::start(&["--browse"]);
    let url = format!("https://127.0.0.1:{}/", site.address.port());
    let mut first = Proxy::local(&["--drain-timeout", "1"]);
    let address = first.serving.address.to_string();
    let proxy = courser::client::Proxy::masque(&address).expect("a proxy");
    let client = courser::Client::builder()
        .dangerous_insecure()
        .dangerous_insecure_proxy()
        .version(courser::client::HttpVersion::Http3Only)
        .proxy(proxy)
        .build()
        .expect("a client");
    let limit = Duration::from_secs(10);
    let response = tokio::time::timeout(limit, client.get(&url).send()).await;
    assert_eq!(
        response.expect("in time").expect("a response").status(),
        200
    );
    first.serving.signal(rustix::process::Signal::TERM);
    first.serving.ended();
    let flags = [
        "proxy",
        "--json",
        "--listen",
        &address,
        "--allow",
        "127.0.0.0/8",
    ];
    let _second = Serving::run(&flags, Folder::new());
    let response = tokio::time::timeout(limit, client.get(&url).send()).await;
    assert_eq!(
        response.expect("in time").expect("a response").status(),
        200
    );
}

#[test]
fn errors_name_the_hop_and_what_the_proxy_reports() {
    let mut proxy = Proxy::local(&["--deny", "all"]);
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("bound").port();
    drop(closed);
    for (url, status, word, reason) in [
        (
            "https://192.0.2.1/".to_owned(),
            "403",
            "destination_ip_prohibited",
            "a rule denies 192.0.2.1:443",
        ),
        (
            format!("https://127.0.0.1:{port}/"),
            "502",
            "connection_refused",
            "Connection refused",
        ),
        (
            // Its address may be the one that a rule allows.
            "https://nothing.invalid/".to_owned(),
            "502",
            "dns_error",
            "nothing.invalid is not resolved",
        ),
    ] {
        let output = proxy.get("masque", &url, &["--http2"]);
        let (_, error) = text(&output);
        assert!(!output.status.success());
        for part in ["the proxy masque://", "CONNECT", status, word] {
            assert!(error.contains(part), "{url} {part}: {error}");
        }
        // The reason is for the operator.
        assert!(!error.contains(reason), "{error}");
        let line = proxy.logged();
        assert!(
            line["reason"].as_str().expect("one").contains(reason),
            "{line}"
        );
    }
    let unreachable = run(&[
        "get",
        "--silent",
        "--show-error",
        "--proxy",
        &format!("masque://127.0.0.1:{port}"),
        "--http3-only",
        "https://127.0.0.1:1/",
    ]);
    let (_, error) = text(&unreachable);
    assert!(error.contains("proxy masque://127.0.0.1"), "{error}");
}

#[test]
fn clients_need_credentials() {
    let folder = Folder::new();
    let made = run(&["proxy", "--make-token", "alice"]);
    let (line, token) = text(&made);
    let token = token
        .trim_end()
        .rsplit(' ')
        .next()
        .expect("a token")
        .to_owned();
    let file = folder.file("clients", &line);
    let target = Target::start();
    let mut proxy = Proxy::start_in(folder, &["--auth", &file, "--allow", "127.0.0.0/8"]);
    let http = format!("http://127.0.0.1:{}/", target.port);
    let bearer = format!("Proxy-Authorization: Bearer {token}");
    let user = format!("alice:{token}");
    for (flags, status) in [
        (&[][..], 407),
        (&["--proxy-user", "alice:wrong"], 407),
        (&["--proxy-user", &user], 200),
        (&["--proxy-header", &bearer], 200),
    ] {
        let (out, error) = text(&proxy.get("https", &http, flags));
        assert_eq!(out, format!("1.1 {status}"), "{flags:?}: {error}");
        let line = proxy.logged();
        assert_eq!(line["status"], status, "{line}");
        let name = if status == 200 {
            Value::from("alice")
        } else {
            Value::Null
        };
        assert_eq!(line["user"], name, "{line}");
        let output = proxy.get("masque", &http, flags);
        let (out, error) = text(&output);
        match status {
            200 => assert_eq!(out, "1.1 200", "{error}"),
            _ => assert!(
                error.contains("407") && error.contains("add user name"),
                "{error}"
            ),
        }
        proxy.logged();
    }
    let answer = request(
        proxy.plain,
        "GET http://127.0.0.1/ HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    );
    assert!(
        answer.contains("proxy-authenticate: Basic realm="),
        "{answer}"
    );
    assert!(
        answer.contains("proxy-authenticate: Bearer realm="),
        "{answer}"
    );
}

/// Limit K651, attack A378.
#[test]
fn wrong_credentials_are_slowed_down() {
    let folder = Folder::new();
    let (line, _) = text(&run(&["proxy", "--make-token", "alice"]));
    let file = folder.file("clients", &line);
    let proxy = Proxy::start_in(folder, &["--auth", &file]);
    let wrong =
        "CONNECT a.test:1 HTTP/1.1\r\nhost: a.test:1\r\nproxy-authorization: Bearer x\r\n\r\n";
    let answers: Vec<_> = (0..25).map(|_| request(proxy.plain, wrong)).collect();
    let count = |status: &str| answers.iter().filter(|it| it.contains(status)).count();
    assert_eq!(count("HTTP/1.1 407"), 20);
    assert_eq!(count("HTTP/1.1 429"), 5);
    assert!(answers[24].contains("retry-after: "), "{}", answers[24]);
}

/// Attack A377.
#[test]
fn proxies_that_everybody_could_use_are_refused() {
    for (flags, word) in [
        (&["--listen", "0.0.0.0:0"][..], "--open"),
        (
            &["--listen", "127.0.0.1:0", "--listen", "[::]:0"],
            "--auth FILE",
        ),
        (
            &["--listen", "127.0.0.1:0", "--plain", "0.0.0.0:0"],
            "0.0.0.0:0 can be reached",
        ),
        (
            &["--auth", "/nonexistent/clients"],
            "cannot use --auth /nonexistent/clients",
        ),
        (&["--allow", "example.org:https"], "the port is 'https'"),
        (&["--deny", "10.0.0.1/8"], "is not a target"),
        (&["--make-token", "a:b"], "a name has"),
    ] {
        let error = refusal(&[&["proxy"], flags].concat());
        assert!(error.contains(word), "{flags:?}: {error}");
    }
    let serving = Serving::run(
        &["proxy", "--listen", "0.0.0.0:0", "--open", "--json"],
        Folder::new(),
    );
    assert_eq!(serving.announced["proxy"]["needs_credentials"], false);
}

/// Attack A376: no form of an address of this machine or its network is reached, by any protocol.
#[test]
fn addresses_of_the_network_of_the_proxy_are_not_reached() {
    let target = Target::start();
    let mut proxy = Proxy::start(&["--deny", "192.0.2.0/24"]);
    let port = target.port;
    for host in [
        "127.0.0.1",
        "127.1.2.3",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00::1]",
    ] {
        let answers = [
            format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n"),
            format!("GET http://{host}:{port}/ HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n"),
        ]
        .map(|it| request(proxy.plain, &it));
        for answer in answers {
            assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
            assert!(
                answer.contains("error=destination_ip_prohibited"),
                "{answer}"
            );
            assert_eq!(proxy.logged()["end"], "refused");
        }
    }
    // Names that some resolvers read as addresses are no targets.
    for host in ["2130706433", "0x7f.1", "0177.0.0.1", "127.1"] {
        let text = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n");
        let answer = request(proxy.plain, &text);
        assert!(answer.starts_with("HTTP/1.1 400"), "{host}: {answer}");
    }
    assert_eq!(target.accepted(), 0);
}

/// Attack A381: a proxy does not send to itself.
#[test]
fn loops_end() {
    let proxy = Proxy::start(&[]);
    let own = format!("127.0.0.1:{}", proxy.plain);
    let answer = request(
        proxy.plain,
        &format!("CONNECT {own} HTTP/1.1\r\nhost: {own}\r\n\r\n"),
    );
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // A rule that allows it: each turn of http URLs is recognized by Via.
    let proxy = Proxy::local(&[]);
    let own = format!("127.0.0.1:{}", proxy.plain);
    let inner = format!("GET http://{own}/ HTTP/1.1\r\nhost: {own}\r\n\r\n");
    let answer = request(proxy.plain, &inner);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("This is a proxy"), "{answer}");
}

#[test]
fn end_of_one_direction_is_passed_on() {
    let target = Target::start();
    let mut proxy = Proxy::local(&[]);
    let mut stream = connect(proxy.plain, &format!("127.0.0.1:{}", target.port));
    stream.write_all(b"all of it").expect("open");
    stream.shutdown(std::net::Shutdown::Write).expect("open");
    // The target answers after the end of what it receives.
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an end");
    assert_eq!(answer, "received 9 bytes");
    let line = proxy.logged();
    assert_eq!(line["end"], "finished", "{line}");
    assert_eq!(line["bytes_to_target"], 9, "{line}");
    assert_eq!(line["bytes_from_target"], 16, "{line}");
}

/// Limit K646.
#[test]
fn idle_tunnels_end() {
    let target = Target::start();
    let mut proxy = Proxy::local(&["--tcp-idle", "1"]);
    let mut stream = connect(proxy.plain, &format!("127.0.0.1:{}", target.port));
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(proxy.logged()["end"], "idle");
}

/// Limit K621, attack A383: tunnels over TCP and UDP, and requests for http URLs, are counted together.
#[test]
fn tunnels_of_a_client_are_bounded() {
    let target = Target::start();
    let proxy = Proxy::local(&["--tunnels-per-client", "3"]);
    let place = format!("127.0.0.1:{}", target.port);
    let open: Vec<TcpStream> = (0..3).map(|_| connect(proxy.plain, &place)).collect();
    for text in [
        format!("CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n\r\n"),
        format!("GET http://{place}/ HTTP/1.1\r\nhost: {place}\r\n\r\n"),
    ] {
        let answer = request(proxy.plain, &text);
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    }
    let (_, error) = text(&proxy.get("masque", &format!("https://{place}/"), &["--http3-only"]));
    assert!(error.contains("429"), "{error}");
    drop(open);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while request(
        proxy.plain,
        &format!("GET http://{place}/ HTTP/1.1\r\nhost: {place}\r\n\r\n"),
    )
    .starts_with("HTTP/1.1 429")
    {
        assert!(std::time::Instant::now() < until);
    }
}

/// Attack A380: the target is the one of the request line, and what is for the proxy stays there.
#[test]
fn http_urls_are_forwarded_without_fields_for_the_proxy() {
    let target = Target::start();
    let proxy = Proxy::local(&[]);
    let place = format!("127.0.0.1:{}", target.port);
    let head = format!(
        "POST http://{place}/path?query HTTP/1.1\r\nhost: other.test\r\nproxy-connection: keep-alive\r\n\
         connection: x-mine\r\nx-mine: 1\r\nproxy-authorization: Basic eA==\r\ncontent-length: 4\r\n\r\nbody"
    );
    let answer = request(proxy.plain, &head);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let seen = target.request();
    assert!(seen.starts_with("POST /path?query HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("host: {place}\r\n")), "{seen}");
    assert!(seen.ends_with("\r\n\r\nbody"), "{seen}");
    for name in ["proxy-", "x-mine", "other.test", "connection: x"] {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
    assert!(seen.contains("via: 1.1 courser-"), "{seen}");
    for (text, status) in [
        (
            format!("GET https://{place}/ HTTP/1.1\r\nhost: {place}\r\n\r\n"),
            "501",
        ),
        (
            format!("GET http://{place}/ HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"),
            "400",
        ),
        (
            "CONNECT a.test HTTP/1.1\r\nhost: a.test\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "CONNECT a.test:0 HTTP/1.1\r\nhost: a.test\r\n\r\n".to_owned(),
            "400",
        ),
        (
            format!(
                "POST http://{place}/ HTTP/1.1\r\nhost: {place}\r\ncontent-length: 4\r\n\
                 transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            "",
        ),
    ] {
        let answer = request(proxy.plain, &text);
        match status {
            // Two framings: whatever hyper makes of it, the target sees one.
            "" => assert!(target.is_quiet_or_single(), "{answer}"),
            status => assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            ),
        }
    }
}

/// Open tunnels are given --drain-timeout, then cut, and logged.
#[cfg(unix)]
#[test]
fn tunnels_are_cut_at_the_end() {
    let target = Target::start();
    let mut proxy = Proxy::local(&["--drain-timeout", "1"]);
    let place = format!("127.0.0.1:{}", target.port);
    let mut stream = connect(proxy.plain, &place);
    stream.write_all(b"x").expect("open");
    proxy.serving.signal(rustix::process::Signal::TERM);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let line = proxy.logged();
    assert_eq!(line["end"], "cut", "{line}");
    assert_eq!(line["bytes_to_target"], 1, "{line}");
}

/// The same workloads as without a proxy, each connection in a tunnel of its own.
#[test]
fn perf_measures_through_a_proxy() {
    let server = Server::start(&["--webtransport"]);
    let mut proxy = Proxy::local(&["--udp"]);
    let via = format!("127.0.0.1:{}", proxy.port());
    for flags in [
        &["--scenario", "upload", "--number", "3M"][..],
        &[
            "--scenario",
            "download",
            "--number",
            "3M",
            "--connections",
            "2",
        ],
        &["--scenario", "rr", "--number", "100"],
        &["--scenario", "upload", "--number", "1M", "--webtransport"],
    ] {
        let report = server.report(&[&["--via", &via], flags].concat());
        assert!(
            report["settings"]["target"]
                .as_str()
                .expect("a target")
                .contains(" via "),
            "{report}"
        );
        let tunnels = if flags.contains(&"2") { 2 } else { 1 };
        for _ in 0..tunnels {
            let line = proxy.logged();
            assert_eq!(line["method"], "CONNECT-UDP", "{line}");
            assert_eq!(line["status"], 200, "{line}");
        }
    }
    let failed = server.client(&["--via", &format!("masque://{via}/x"), "--number", "1"]);
    assert!(!failed.status.success());
}

#[test]
fn metrics_count_tunnels_and_refusals() {
    let target = Target::start();
    let admin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = admin.local_addr().expect("bound").port();
    drop(admin);
    let address = format!("127.0.0.1:{port}");
    let proxy = Proxy::local(&["--admin", &address]);
    let place = format!("127.0.0.1:{}", target.port);
    let _open = connect(proxy.plain, &place);
    request(
        proxy.plain,
        "CONNECT 10.0.0.1:1 HTTP/1.1\r\nhost: 10.0.0.1:1\r\n\r\n",
    );
    let text = request(
        port,
        "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    for line in [
        "courser_forward_open{protocol=\"tcp\"} 1",
        "courser_forward_opened_total{protocol=\"tcp\"} 1",
        "courser_forward_refused_total{status=\"403\"} 1",
    ] {
        assert!(
            text.lines().any(|it| it.starts_with(line)),
            "{line}: {text}"
        );
    }
}

/// Attack A382: header sections that never end.
#[test]
fn clients_without_tls_that_send_nothing_are_closed() {
    let proxy = Proxy::local(&[]);
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.plain)).expect("open");
    stream
        .write_all(b"GET http://a.test/ HTTP/1.1\r\n")
        .expect("open");
    let large = format!("x: {}\r\n", "y".repeat(70_000));
    stream.write_all(large.as_bytes()).expect("open");
    let mut lines = std::io::BufReader::new(stream);
    let mut first = String::new();
    let _ = lines.read_line(&mut first);
    assert!(
        first.is_empty() || first.starts_with("HTTP/1.1 431"),
        "{first}"
    );
}
