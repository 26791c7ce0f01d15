//! The server and the client of each test, over loopback.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use courser::{ClientConfig, Endpoint};
use courser_interop::{ClientPlan, ServerPlan, Test, fetch, serve};
use tokio::sync::oneshot;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("courser-ends-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        for part in ["www", "downloads"] {
            std::fs::create_dir_all(path.join(part)).expect("a folder");
        }
        Self(path)
    }

    fn path(&self, part: &str) -> PathBuf {
        self.0.join(part)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns an address on which no socket of this moment listens.
fn free_address() -> SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.local_addr().expect("an address")
}

fn write_identity(folder: &Folder) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
    std::fs::write(folder.path("cert.pem"), generated.cert.pem()).expect("written");
    std::fs::write(
        folder.path("priv.key"),
        generated.signing_key.serialize_pem(),
    )
    .expect("written");
}

/// Returns bytes that differ from file to file.
fn content(seed: usize, len: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from((at.wrapping_mul(31) ^ (at >> 8) ^ seed) % 251);
    (0..len).map(|at| byte(at).expect("below 256")).collect()
}

/// Lets a client download files of these lengths from a server, and compares all bytes.
async fn transfer(test: Test, lengths: &[usize], always_http3: bool) {
    let folder = Folder::new(&format!("{test:?}"));
    write_identity(&folder);
    let listen = free_address();
    let mut urls = Vec::new();
    for (index, len) in lengths.iter().enumerate() {
        let name = format!("file{index}");
        let file = folder.path("www").join(&name);
        std::fs::write(file, content(index, *len)).expect("written");
        urls.push(format!("https://{listen}/{name}").parse().expect("a URL"));
    }
    let server = ServerPlan {
        test,
        listen,
        preferred_v4: None,
        preferred_v6: None,
        root: folder.path("www"),
        chain: folder.path("cert.pem"),
        key: folder.path("priv.key"),
        sinks: None,
    };
    let client = ClientPlan {
        test,
        urls,
        downloads: folder.path("downloads"),
        always_http3,
        sinks: None,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(server, async {
        let _ = stopped.await;
    }));
    // The server is bound when it waits for the first time.
    tokio::task::yield_now().await;
    fetch(&client, pending()).await.expect("all files arrive");
    stop.send(()).expect("the server runs");
    serving.await.expect("no panic").expect("it could listen");
    for (index, len) in lengths.iter().enumerate() {
        let arrived = std::fs::read(folder.path("downloads").join(format!("file{index}")));
        let arrived = arrived.expect("the file arrived");
        assert!(arrived == content(index, *len), "file {index} of {test:?}");
    }
}

#[tokio::test]
async fn files_of_all_tests_arrive_unchanged() {
    for test in [
        Test::Handshake,
        Test::Transfer,
        Test::ChaCha20,
        Test::MultiConnect,
        Test::Retry,
        Test::Resumption,
        Test::Http3,
        Test::KeyUpdate,
        Test::Ecn,
    ] {
        transfer(test, &[1024, 0, 300_000], false).await;
    }
}

#[tokio::test]
async fn files_of_all_tests_arrive_over_http3_too() {
    for test in [
        Test::Handshake,
        Test::Transfer,
        Test::MultiConnect,
        Test::Retry,
        Test::Resumption,
        Test::ZeroRtt,
        Test::KeyUpdate,
    ] {
        transfer(test, &[1024, 0, 300_000], true).await;
    }
}

#[tokio::test]
async fn more_files_arrive_than_streams_are_allowed() {
    transfer(Test::Transfer, &[32; 400], false).await;
}

#[tokio::test]
async fn missing_file_is_a_failure_of_the_client() {
    let folder = Folder::new("missing");
    let listen = serve_empty(&folder).await;
    let url = format!("https://{listen}/absent").parse().expect("a URL");
    let client = ClientPlan {
        test: Test::Transfer,
        urls: vec![url],
        downloads: folder.path("downloads"),
        always_http3: false,
        sinks: None,
    };
    let error = fetch(&client, pending())
        .await
        .expect_err("no such file")
        .to_string();
    assert!(error.contains("/absent: "), "{error}");
}

#[tokio::test]
async fn request_beyond_the_limit_ends_its_stream_only() {
    let folder = Folder::new("long");
    let listen = serve_empty(&folder).await;
    std::fs::write(folder.path("www").join("file"), "content").expect("written");
    let client = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a socket");
    let config = ClientConfig::dangerous_insecure()
        .expect("TLS")
        .alpn(["hq-interop"]);
    let connecting = client.connect_with(config, listen, "localhost");
    let connection = connecting.expect("connects").await.expect("connects");
    for (len, answer) in [(4097, None), (4096, Some(b"content".to_vec()))] {
        let mut request = b"GET /file".to_vec();
        // Line ends are not part of the name.
        request.resize(len, b'\n');
        let (mut send, mut receive) = connection.open_bi().await.expect("open");
        let _ = send.write_all(&request).await;
        let _ = send.finish();
        assert_eq!(receive.read_to_end(100).await.ok(), answer, "{len} bytes");
    }
}

/// Starts a server of an empty folder and returns its address.
async fn serve_empty(folder: &Folder) -> SocketAddr {
    write_identity(folder);
    let listen = free_address();
    let server = ServerPlan {
        test: Test::Transfer,
        listen,
        preferred_v4: None,
        preferred_v6: None,
        root: folder.path("www"),
        chain: folder.path("cert.pem"),
        key: folder.path("priv.key"),
        sinks: None,
    };
    tokio::spawn(serve(server, std::future::pending()));
    tokio::task::yield_now().await;
    listen
}
