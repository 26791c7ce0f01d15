//! The lines of `get -v` about the TLS handshake.

use super::serving::Serving;
use crate::common::{Folder, run};

/// A server with a certificate for a.test and other names, and an optional OCSP response.
struct Site {
    serving: Serving,
    cert: String,
    _folder: Folder,
}

impl Site {
    fn start(names: usize, ocsp: Option<&[u8]>, more: &[&str]) -> Self {
        let folder = Folder::new();
        folder.file("a.txt", "content");
        let mut all = vec!["a.test".to_owned()];
        all.extend((1..names).map(|number| format!("name-{number}.test")));
        let mut params = rcgen::CertificateParams::new(all).expect("names");
        params.serial_number = Some(rcgen::SerialNumber::from(vec![SERIAL]));
        let key = rcgen::KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("signed");
        let cert = folder.file("cert.pem", &certificate.pem());
        let key = folder.file("key.pem", &key.serialize_pem());
        let root = folder.path().to_str().expect("UTF-8").to_owned();
        let response = folder.path().join("ocsp.der");
        let path = response.to_str().expect("UTF-8");
        let stapled = match ocsp {
            Some(bytes) => {
                std::fs::write(&response, bytes).expect("a file");
                vec!["--ocsp", path]
            }
            None => Vec::new(),
        };
        let common = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--cert",
            &cert,
            "--key",
            &key,
            &root,
        ];
        let serving = Serving::run(&[&common[..], &stapled, more].concat(), Folder::new());
        Self {
            serving,
            cert,
            _folder: folder,
        }
    }

    /// Returns the output of `get -v` for this number of transfers.
    fn verbose(&self, transfers: usize, flags: &[&str]) -> String {
        let port = self.serving.address.port();
        let resolve = format!("a.test:{port}:127.0.0.1");
        let url = format!("https://a.test:{port}/a.txt");
        let common = ["get", "-v", "--cacert", &self.cert, "--resolve", &resolve];
        let urls = vec![url.as_str(); transfers];
        let output = run(&[&common[..], flags, &urls].concat());
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success(), "{flags:?}: {text}");
        text
    }
}

fn wrap(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u8::try_from(content.len()).expect("short");
    let header = if length < 0x80 {
        vec![tag, length]
    } else {
        vec![tag, 0x81, length]
    };
    [header, content].concat()
}

/// Returns an OCSP response with the status good, without a signature (RFC 6960 §4.2.1).
fn good() -> Vec<u8> {
    let (time, empty) = (b"20250101000000Z", wrap(0x30, &[]));
    let id = wrap(0x30, &[&empty, &[4, 0], &[4, 0], &[2, 1, SERIAL]]);
    let single = wrap(0x30, &[&id, &[0x80, 0], &wrap(0x18, &[time])]);
    let responder = wrap(0xa2, &[&[4, 0]]);
    let all = wrap(0x30, &[&single]);
    let data = wrap(0x30, &[&responder, &wrap(0x18, &[time]), &all]);
    let basic = wrap(0x30, &[&data, &empty, &[3, 1, 0]]);
    let oid = [6, 9, 0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
    let bytes = wrap(0x30, &[&oid, &wrap(4, &[&basic])]);
    wrap(0x30, &[&[0x0a, 1, 0], &wrap(0xa0, &[&bytes])])
}

/// Returns the parts of the line about the certificate: compression and OCSP.
fn certificate(text: &str) -> (&str, &str) {
    let lines = text
        .lines()
        .find_map(|line| line.strip_prefix("* Certificate: "));
    lines.and_then(|line| line.split_once(", ")).expect(text)
}

#[test]
fn certificate_and_key_exchange_are_reported() {
    let site = Site::start(1, None, &["--curves", "secp384r1"]);
    let text = site.verbose(
        2,
        &["--http3-only", "--tls13-ciphers", "TLS_AES_256_GCM_SHA384"],
    );
    let line = "* TLS: cipher suite TLS_AES_256_GCM_SHA384, key exchange secp384r1\n";
    assert_eq!(
        text.matches(line).count(),
        1,
        "one line per connection: {text}"
    );
    assert_eq!(text.matches("* Certificate: ").count(), 1, "{text}");
    assert_eq!(certificate(&text).1, "no OCSP response stapled", "{text}");
    assert!(text.contains(", QUIC version 1\n"), "{text}");
    assert!(!text.contains("ECH"), "{text}");
    let text = site.verbose(1, &["--http2"]);
    assert!(text.contains(", key exchange secp384r1\n"), "{text}");
    assert!(
        !text.contains("* Certificate:"),
        "a certificate line over TCP: {text}"
    );
}

#[test]
fn compression_and_ocsp_status_are_reported() {
    let site = Site::start(100, Some(&good()), &[]);
    let text = site.verbose(1, &["--http3-only"]);
    let (compression, ocsp) = certificate(&text);
    // The algorithm depends on the features of the build.
    let is_compressed = compression.starts_with("compressed with ");
    assert_eq!(
        is_compressed,
        cfg!(feature = "certificate-compression"),
        "{text}"
    );
    assert_eq!(ocsp, "OCSP response stapled: good (not verified)", "{text}");
    // A resumed session has no certificate. The first connection of early data gets the session.
    let early = Site::start(100, Some(&good()), &["--early-data"]);
    let text = early.verbose(1, &["--http3-only", "--early-data=first"]);
    assert!(
        text.contains("Sent in early data (0-RTT), which the server accepted"),
        "{text}"
    );
    assert!(!text.contains("* Certificate:"), "{text}");
}

#[test]
fn ech_grease_is_reported() {
    let site = Site::start(1, None, &[]);
    for version in ["--http3-only", "--http2"] {
        let text = site.verbose(1, &[version, "--ech", "grease"]);
        assert!(
            text.contains("* ECH: not used, the extension was GREASE\n"),
            "{version}: {text}"
        );
        let text = site.verbose(1, &[version, "--ech", "false"]);
        assert!(!text.contains("ECH"), "{version}: {text}");
    }
}

const SERIAL: u8 = 7;
