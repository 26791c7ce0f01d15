use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use courser::server::{Certificates, Event, Protocol};
use courser::{Identity, serve};

use super::client::Client;
use super::within;
use crate::common::until;

/// A folder with a certificate and its key, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("courser-server-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("temporary files");
        Self(path)
    }

    fn paths(&self) -> (PathBuf, PathBuf) {
        (self.0.join("cert.pem"), self.0.join("key.pem"))
    }

    /// Replaces the certificate.
    fn renew(&self) -> Identity {
        let key = rcgen::KeyPair::generate().expect("random numbers");
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("signed");
        let (cert_path, key_path) = self.paths();
        std::fs::write(&cert_path, certificate.pem()).expect("written");
        std::fs::write(&key_path, key.serialize_pem()).expect("written");
        Identity::from_pem_files(cert_path, key_path).expect("valid files")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Events = Arc<Mutex<Vec<String>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_reloaded_for_all_protocols() {
    let folder = Folder::new("reload");
    let old = folder.renew();
    let (cert, key) = folder.paths();
    let certificates = Certificates::pem_files(&cert, &key).expect("readable");
    let events = Events::default();
    let listener = events.clone();
    let server = serve("127.0.0.1:0", certificates).on_event(move |event: &Event| {
        listener.lock().expect("no panic").push(event.to_string());
    });
    let bound = server.bind().expect("a free port");
    let handle = bound.handle();
    let app = Router::new().route("/", get(|| async { "served" }));
    let task = crate::common::spawn(bound.service(app).into_future());
    let is_served = async |identity: &Identity| {
        let mut served = Vec::new();
        for protocol in Protocol::ALL {
            match within(Client::connect(protocol, handle.local_addr(), identity)).await {
                Ok(mut client) => {
                    assert_eq!(within(client.text("/")).await, "served");
                    served.push(protocol);
                }
                Err(_) => assert!(served.is_empty()),
            }
        }
        !served.is_empty()
    };
    let wait_for = async |word: &str| {
        let is_reported = || {
            let events = events.lock().expect("no panic");
            events.iter().any(|line| line.contains(word))
        };
        until(is_reported).await;
    };
    assert!(is_served(&old).await);

    std::fs::write(&key, "half a key").expect("written");
    wait_for("keeping the old certificate").await;
    assert!(is_served(&old).await);
    assert!(handle.reload().is_err());

    let new = folder.renew();
    wait_for("replaced").await;
    assert!(is_served(&new).await);
    assert!(!is_served(&old).await);
    assert_eq!(handle.reload(), Ok(false));
    assert_ne!(
        handle.stats().quic_handshakes_failed + handle.stats().tcp.handshakes_failed,
        0
    );
    task.abort();
}

/// An authority that signs successive certificates for the same files.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    /// The identity that clients trust.
    identity: Identity,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().expect("random numbers");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("valid names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("signed");
        let pem = (certificate.pem(), key.serialize_pem());
        let identity = Identity::from_pem(pem.0.as_bytes(), pem.1.as_bytes());
        Self {
            issuer: rcgen::Issuer::new(params, key),
            identity: identity.expect("fit"),
        }
    }

    fn renew(&self, folder: &Folder) {
        let key = rcgen::KeyPair::generate().expect("random numbers");
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let (cert_path, key_path) = folder.paths();
        std::fs::write(&cert_path, certificate.pem()).expect("written");
        std::fs::write(&key_path, key.serialize_pem()).expect("written");
    }
}

/// Sends requests endlessly, on one connection or on a new one each time, and counts the responses.
async fn ask_repeatedly(
    protocol: Protocol,
    address: std::net::SocketAddr,
    authority: Arc<Authority>,
    reconnects: bool,
    answers: tokio::sync::watch::Sender<u64>,
) {
    let connect = async || {
        let connecting = Client::connect(protocol, address, &authority.identity);
        within(connecting).await.expect("a trusted certificate")
    };
    let mut client = connect().await;
    loop {
        if reconnects {
            client = connect().await;
        }
        assert_eq!(within(client.text("/")).await, "served", "{protocol}");
        answers.send_modify(|count| *count += 1);
    }
}

/// A104, F56: no request fails while one certificate replaces another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_replaced_under_load() {
    let (folder, authority) = (Folder::new("load"), Arc::new(Authority::new()));
    authority.renew(&folder);
    let (cert, key) = folder.paths();
    let certificates = Certificates::pem_files(&cert, &key).expect("readable");
    let bound = serve("127.0.0.1:0", certificates)
        .bind()
        .expect("a free port");
    let handle = bound.handle();
    let app = Router::new().route("/", get(|| async { "served" }));
    let serving = crate::common::spawn(bound.service(app).into_future());
    let mut asking = tokio::task::JoinSet::new();
    let mut answers = Vec::new();
    for protocol in Protocol::ALL {
        for reconnects in [false, true] {
            let (sender, receiver) = tokio::sync::watch::channel(0);
            answers.push(receiver);
            let authority = authority.clone();
            let address = handle.local_addr();
            asking.spawn(ask_repeatedly(
                protocol, address, authority, reconnects, sender,
            ));
        }
    }
    let mut digests = std::collections::BTreeSet::new();
    for _ in 0..10 {
        authority.renew(&folder);
        // The server may already have detected the change.
        handle.reload().expect("certificate and key fit");
        digests.insert(handle.certificate().expect("readable").sha256);
        for answers in &mut answers {
            // The second of them began after the change.
            let wanted = *answers.borrow() + 2;
            let answered = answers.wait_for(|count| *count >= wanted);
            let failed = async {
                let ended = asking.join_next().await.expect("six tasks");
                panic!(
                    "a request failed: {:?}",
                    ended.expect_err("it never returns")
                );
            };
            tokio::select! {
                answered = within(answered) => { answered.expect("the task runs"); }
                () = failed => {}
            }
        }
    }
    assert_eq!(digests.len(), 10);
    asking.abort_all();
    serving.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reported_properties_match_the_certificate() {
    let identity = Identity::dev().expect("random numbers");
    let bound = serve("127.0.0.1:0", &identity).bind().expect("a free port");
    let facts = bound.handle().certificate().expect("readable");
    assert_eq!(facts.names, ["localhost", "127.0.0.1", "::1"]);
    let der = identity.certificate();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &der);
    assert_eq!(facts.sha256, digest.as_ref());
}
