//! Upgrades (RFC 9110 §7.8, RFC 6455).

use courser_oracle::{
    Client, Content, PATIENCE, Request, Response, Script, Seen, Step, UpstreamVersion, Version,
    When, Wire, h1,
};
use courser_services::{Proxy, UpgradeProtocol};

use crate::scene::Scene;

fn upgrade(protocol: &str) -> Request {
    Request::new("GET", "/chat")
        .with("connection", "keep-alive, Upgrade, HTTP2-Settings")
        .with("upgrade", protocol)
        .with("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA")
        .with("origin", "https://site.test")
        .with("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .with("sec-websocket-version", "13")
        .with("sec-websocket-protocol", "chat, superchat")
        .with("sec-websocket-extensions", "permessage-deflate; x=1")
        .with("cookie", "a=1")
}

fn switch(protocol: &str, more: &str) -> Script {
    let bytes = format!(
        "HTTP/1.1 101 \r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\
         sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n{more}"
    );
    Script::Raw(When::AtEnd, vec![Step::Send(bytes.into_bytes())])
}

async fn wire(scene: &Scene) -> Box<Wire> {
    match scene.client(Version::Http1).await {
        Client::Http1(wire) => wire,
        _ => unreachable!("the version is HTTP/1.1"),
    }
}

async fn ask(scene: &Scene, request: &Request) -> (Seen, Vec<Seen>, Box<Wire>) {
    let mut wire = wire(scene).await;
    wire.send(&h1::request(request)).await;
    let answer = h1::read_response(&mut wire, false).await;
    (answer, scene.upstream.take().await, wire)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_is_forwarded_with_its_fields() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    // Bytes in the segment of the response are the first of the tunnel.
    scene.upstream.script(switch("WebSocket", "\u{1}first"));
    let (answer, seen, mut wire) = ask(&scene, &upgrade("h2c, WebSocket")).await;
    assert_eq!(answer.status(), 101, "{answer}");
    assert_eq!(answer.get("upgrade"), "websocket");
    assert_eq!(answer.get("connection"), "upgrade");
    assert_eq!(
        answer.get("sec-websocket-accept"),
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
    assert_eq!(seen[0].get("upgrade"), "websocket");
    assert_eq!(seen[0].get("connection"), "upgrade");
    assert_eq!(seen[0].get("http2-settings"), "");
    for (name, value) in [
        ("origin", "https://site.test"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat, superchat"),
        ("sec-websocket-extensions", "permessage-deflate; x=1"),
        ("cookie", "a=1"),
    ] {
        assert_eq!(seen[0].get(name), value);
    }
    assert_eq!(wire.take(6).await.as_deref(), Some(&b"\x01first"[..]));
}

/// RFC 6455 §5: frames pass as they are, and the first ones may follow the handshake at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_pass_unchanged_in_both_directions() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    let all: Vec<u8> = (0..=255).collect();
    let head = b"HTTP/1.1 101 \r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
    let steps = vec![
        Step::Send(head.to_vec()),
        // Sent before the response.
        Step::Expect(b"early".to_vec(), PATIENCE),
        Step::Expect(all.clone(), PATIENCE),
        Step::Send(all.clone()),
        Step::Close,
    ];
    scene.upstream.script(Script::Raw(When::AtEnd, steps));
    let mut wire = wire(&scene).await;
    let request = h1::request(&upgrade("websocket"));
    wire.send(&[&request[..], b"early"].concat()).await;
    let answer = h1::read_response(&mut wire, false).await;
    assert_eq!(answer.status(), 101, "{answer}");
    wire.send(&all).await;
    assert_eq!(wire.take(256).await, Some(all));
    assert!(
        !wire.fill().await && wire.end.is_some(),
        "the end of the tunnel"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_protocols_are_forwarded_without_the_upgrade() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for protocol in ["h2c", "TLS/1.2", "HTTP/2.0", "example/1", "websocketx", ""] {
        scene.upstream.script(Script::answer(Response::ok()));
        let (answer, seen, _) = ask(&scene, &upgrade(protocol)).await;
        assert_eq!(answer.status(), 200, "{protocol}: {answer}");
        for name in ["upgrade", "connection", "http2-settings"] {
            assert_eq!(seen[0].get(name), "", "{protocol}: {}", seen[0]);
        }
        // An upstream server that switches nevertheless is not believed.
        scene.upstream.script(switch(protocol, ""));
        let (answer, _, _) = ask(&scene, &upgrade(protocol)).await;
        assert_eq!(answer.status(), 502, "{protocol}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listed_protocols_are_forwarded() {
    let example = UpgradeProtocol::parse("example/1").expect("a protocol");
    let settings = |proxy: Proxy| proxy.with_upgrades([example]);
    let scene = Scene::start_with(UpstreamVersion::Http1, settings, false).await;
    scene.upstream.script(switch("example/1", "x"));
    let (answer, seen, mut wire) = ask(&scene, &upgrade("example/1, h2c")).await;
    assert_eq!(answer.status(), 101, "{answer}");
    assert_eq!(seen[0].get("upgrade"), "example/1");
    assert_eq!(wire.take(1).await.as_deref(), Some(&b"x"[..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switch_to_another_protocol_is_refused() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for protocol in ["h2c", "websocket, h2c", "", "example/1"] {
        scene.upstream.script(switch(protocol, "secret"));
        let (answer, _, _) = ask(&scene, &upgrade("websocket")).await;
        assert_eq!(answer.status(), 502, "{protocol}: {answer}");
    }
}

/// The request would otherwise arrive as one for the content behind the path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_to_an_http2_server_is_refused() {
    let scene = Scene::start(UpstreamVersion::H2c).await;
    let (answer, seen, _) = ask(&scene, &upgrade("websocket")).await;
    assert_eq!(answer.status(), 501, "{answer}");
    assert!(seen.is_empty(), "{seen:?}");
    // Others are ignored, as RFC 9110 §7.8 permits.
    let (answer, seen, _) = ask(&scene, &upgrade("h2c")).await;
    assert_eq!((answer.status(), seen.len()), (200, 1), "{answer}");
}

/// Content of the request is never taken for the first bytes of the tunnel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_of_an_upgrade_is_no_part_of_the_tunnel() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    scene.upstream.script(switch("websocket", "first"));
    for content in [Content::length("abc"), Content::unknown("abc")] {
        let request = upgrade("websocket").content(content);
        let (answer, seen, _) = ask(&scene, &request).await;
        assert_eq!(answer.status(), 101, "{answer}");
        assert_eq!((seen.len(), &*seen[0].content), (1, &b"abc"[..]));
        assert!(seen[0].is_complete(), "{}", seen[0]);
    }
}

/// RFC 6455 §4.2.2, RFC 9110 §15.5.22.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_of_the_upstream_server_are_forwarded() {
    let scene = Scene::start(UpstreamVersion::Http1).await;
    for status in [302, 401, 403, 426, 503] {
        let bytes = format!(
            "HTTP/1.1 {status} x\r\nupgrade: h2c, websocket\r\nconnection: upgrade\r\n\
             sec-websocket-version: 13\r\ncontent-length: 2\r\n\r\nno"
        );
        let steps = vec![Step::Send(bytes.into_bytes())];
        scene.upstream.script(Script::Raw(When::AtEnd, steps));
        let (answer, _, _) = ask(&scene, &upgrade("websocket")).await;
        assert_eq!(answer.status(), status, "{answer}");
        assert_eq!(answer.content, b"no", "{answer}");
        assert_eq!(answer.get("sec-websocket-version"), "13", "{answer}");
        let named = if status == 426 { "websocket" } else { "" };
        assert_eq!(answer.get("upgrade"), named, "{answer}");
        // Over HTTP/2 and HTTP/3 the field does not exist.
        for version in [Version::Http2, Version::Http3] {
            let (answer, _) = scene.exchange(version, &Request::new("GET", "/")).await;
            assert_eq!(
                (answer.status(), answer.get("upgrade")),
                (status, String::new())
            );
        }
    }
}
