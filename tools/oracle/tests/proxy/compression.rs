//! Content that the proxy compresses (RFC 9110 §7.7).

use courser_oracle::{Content, Request, Response, Script, Seen, UpstreamVersion, Version};

use crate::scene::Scene;

async fn answer(scene: &Scene, request: Request, response: Response) -> Seen {
    let content = Content::Length(vec![vec![b'x'; 2000]]);
    let response = response.content(content).with("content-type", "text/plain");
    scene.upstream.script(Script::answer(response));
    let request = request.with("accept-encoding", "gzip");
    scene.exchange(Version::Http1, &request).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_compressed_unless_a_field_forbids_it() {
    let scene = Scene::start_with(UpstreamVersion::Http1, |proxy| proxy, true).await;
    let get = || Request::new("GET", "/");
    let ok = || {
        Response::new(200)
            .with("etag", "\"1\"")
            .with("accept-ranges", "bytes")
    };
    let compressed = answer(&scene, get(), ok()).await;
    assert_eq!(compressed.get("content-encoding"), "gzip", "{compressed}");
    assert_eq!(compressed.get("etag"), "W/\"1\"");
    assert_eq!(compressed.get("accept-ranges"), "");
    assert!(compressed.get("vary").contains("accept-encoding"));
    assert!(
        compressed.content.starts_with(&[0x1f, 0x8b]),
        "{compressed}"
    );
    for (name, value) in [
        ("cache-control", "max-age=60, no-transform"),
        ("content-encoding", "x-own"),
        ("content-digest", "sha-256=:AA==:"),
        ("repr-digest", "sha-256=:AA==:"),
        ("content-md5", "AA=="),
        ("content-range", "bytes 0-1999/9000"),
    ] {
        let kept = answer(&scene, get(), ok().with(name, value)).await;
        assert_eq!(kept.content, vec![b'x'; 2000], "{name}: {kept}");
        assert_eq!(kept.get("etag"), "\"1\"", "{name}");
        assert_eq!(kept.get("accept-ranges"), "bytes", "{name}");
    }
    let kept = answer(&scene, get().with("cache-control", "no-transform"), ok()).await;
    assert_eq!(kept.content, vec![b'x'; 2000], "{kept}");
}
