//! Tests of `/qlog` over HTTP.

use super::*;

const TOKEN: &str = "0123456789abcdef";

fn guard() -> Guard {
    let guard = Guard::new(&[]).with_token(TOKEN.as_bytes());
    guard.expect("long enough")
}

/// Sends a request for `/qlog`. Returns the TCP connection and the header section of the response.
async fn ask(scene: &Scene, method: &str, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(scene.admin).await.expect("listens");
    let request = format!(
        "{method} /qlog HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("open");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a header section"));
    }
    (stream, String::from_utf8(head).expect("text"))
}

async fn status(scene: &Scene, method: &str, token: &str) -> u16 {
    let (_, head) = ask(scene, method, token).await;
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    status.expect("a status")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_need_a_token() {
    let scene = Scene::start(Guard::new(&[])).await;
    let client = scene.client(HttpVersion::Http3Only);
    hello(&scene, &client).await;
    for method in ["GET", "HEAD"] {
        assert_eq!(status(&scene, method, TOKEN).await, 403, "none is set");
    }
    let scene = Scene::start(guard()).await;
    for method in ["GET", "HEAD"] {
        for wrong in ["", "0123456789abcdeg"] {
            assert_eq!(status(&scene, method, wrong).await, 401, "{wrong}");
        }
    }
    assert_eq!(status(&scene, "HEAD", TOKEN).await, 405);
    assert_eq!(status(&scene, "POST", TOKEN).await, 405);
    assert_eq!(status(&scene, "GET", TOKEN).await, 404, "no connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_ends_with_the_connection_of_its_reader() {
    let scene = Scene::start(guard()).await;
    let client = scene.client(HttpVersion::Http3Only);
    hello(&scene, &client).await;
    let (mut reader, head) = ask(&scene, "GET", TOKEN).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("application/qlog+json-seq"), "{head}");
    hello(&scene, &client).await;
    let mut text = String::new();
    while !text.contains("http3:frame_created") {
        let mut part = [0; 4096];
        let len = reader.read(&mut part).await.expect("open");
        assert!(len > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&part[..len]));
    }
    assert_eq!(status(&scene, "GET", TOKEN).await, 409, "it is followed");
    let qlog_permits = &scene.endpoints.qlog_permits;
    assert_eq!(qlog_permits.available_permits(), tap::MAX_READERS - 1);
    // The sink is detached even though its connection is idle and writes no records.
    drop(reader);
    let began = Instant::now();
    while qlog_permits.available_permits() < tap::MAX_READERS {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status(&scene, "GET", TOKEN).await, 200);
}
