//! A file service in an axum application, over all three protocols.

use axum::Router;
use axum::routing::get;
use courser::files::Files;
use courser::server::Protocol;

use super::client::Client;
use super::{start, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_mounted_in_an_axum_application() {
    let folder = std::env::temp_dir().join(format!("courser-axum-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("created");
    std::fs::create_dir_all(folder.join("sub")).expect("created");
    std::fs::write(folder.join("a.txt"), "from a file").expect("written");
    let files = Files::builder()
        .compress(true)
        .open(&folder)
        .expect("exists");
    let nested = Files::builder()
        .prefix("/static")
        .open(&folder)
        .expect("exists");
    let app = Router::new()
        .route("/hello", get(|| async { "from a handler" }))
        .nest_service("/static", nested)
        .fallback_service(files);
    let running = start(app);
    for protocol in Protocol::ALL {
        let mut client = Client::connect(protocol, running.handle.local_addr(), &running.identity)
            .await
            .expect("a connection");
        for (path, expected) in [
            ("/hello", "from a handler"),
            ("/a.txt", "from a file"),
            ("/static/a.txt", "from a file"),
        ] {
            let got = within(client.text(path)).await;
            assert_eq!(got, expected, "{protocol} {path}");
        }
        let response = within(client.get("/static/nothing"))
            .await
            .expect("an answer");
        assert_eq!(response.status(), 404, "{protocol}");
        for (path, expected) in [("/sub", "/sub/"), ("/static/sub?a", "/static/sub/?a")] {
            let response = within(client.get(path)).await.expect("an answer");
            assert_eq!(response.headers()["location"], expected, "{protocol}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
