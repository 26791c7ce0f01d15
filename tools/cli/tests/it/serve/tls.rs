//! Client certificates, OCSP responses, algorithms and Encrypted Client Hello of `serve` and `get`.

use super::serving::Serving;
use crate::common::{Folder, refusal, run};

/// The paths of a certificate and its key.
pub(crate) struct CertificateFiles {
    pub(crate) cert: String,
    pub(crate) key: String,
}

pub(crate) fn certificate_for(folder: &Folder, name: &str) -> CertificateFiles {
    let key = rcgen::KeyPair::generate().expect("random numbers");
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
    // By default all would have the same issuer.
    params.distinguished_name = rcgen::DistinguishedName::new();
    let kind = rcgen::DnType::CommonName;
    params.distinguished_name.push(kind, name);
    let certificate = params.self_signed(&key).expect("signed");
    CertificateFiles {
        cert: folder.file(&format!("{name}.pem"), &certificate.pem()),
        key: folder.file(&format!("{name}.key"), &key.serialize_pem()),
    }
}

/// Serves a folder with one file.
fn serve(folder: &Folder, server: &CertificateFiles, arguments: &[&str]) -> Serving {
    folder.file("a.txt", "content");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let common = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--cert",
        &server.cert,
        "--key",
        &server.key,
        &path,
    ];
    Serving::run(&[&common, arguments].concat(), Folder::new())
}

/// Fetches the file. Returns its content, or the exit code and the error.
fn get(
    serving: &Serving,
    server: &CertificateFiles,
    arguments: &[&str],
) -> Result<String, (Option<i32>, String)> {
    let port = serving.address.port();
    let (resolve, url) = (
        format!("a.test:{port}:127.0.0.1"),
        format!("https://a.test:{port}/a.txt"),
    );
    let common = ["get", "--cacert", &server.cert, "--resolve", &resolve, &url];
    let output = run(&[&common, arguments].concat());
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err((output.status.code(), text(output.stderr))),
    }
}

/// Waits for an event of this kind, and returns its text.
fn event(serving: &mut Serving, kind: &str) -> String {
    // Warnings about sockets may come first.
    let events = (0..8).map(|_| serving.next_of_all_events());
    let mut events = events.filter(|event| event["event"] == kind);
    events.next().expect("an event")["text"].to_string()
}

#[test]
fn client_certificates_are_required_or_optional() {
    let folder = Folder::new();
    let (server, ours, other) = (
        certificate_for(&folder, "a.test"),
        certificate_for(&folder, "client"),
        certificate_for(&folder, "other"),
    );
    let mut required = serve(&folder, &server, &["--client-ca", &ours.cert]);
    for version in ["--http3-only", "--http2"] {
        let shown = [
            version,
            "--client-cert",
            &ours.cert,
            "--client-key",
            &ours.key,
        ];
        assert_eq!(
            get(&required, &server, &shown).as_deref(),
            Ok("content"),
            "{version}"
        );
        let (_, missing) = get(&required, &server, &[version]).expect_err("no certificate");
        let untrusted = [version, "--cert", &other.cert, "--key", &other.key];
        let (_, rejected) = get(&required, &server, &untrusted).expect_err("another issuer");
        // Over TCP, the alert is lost if the request arrives at a closed socket.
        if version == "--http3-only" {
            assert!(
                missing.contains("requires a client certificate"),
                "{missing}"
            );
            assert!(
                missing.contains("pass --cert FILE and --key FILE"),
                "{missing}"
            );
            assert!(
                rejected.contains("refuses the client certificate"),
                "{rejected}"
            );
        }
    }
    let text = event(&mut required, "client_certificate_refused");
    assert!(text.contains("refused 127.0.0.1:"), "{text}");
    let optional = ["--client-ca", &ours.cert, "--client-cert-optional"];
    let optional = serve(&folder, &server, &optional);
    assert_eq!(
        get(&optional, &server, &["--http3-only"]).as_deref(),
        Ok("content")
    );
    let untrusted = ["--http3-only", "--cert", &other.cert, "--key", &other.key];
    assert!(get(&optional, &server, &untrusted).is_err());
}

#[test]
fn invalid_ocsp_response_is_one_warning() {
    let folder = Folder::new();
    let server = certificate_for(&folder, "a.test");
    let response = folder.file("a.ocsp", "no DER");
    let mut serving = serve(&folder, &server, &["--ocsp", &response]);
    let text = event(&mut serving, "ocsp_ignored");
    assert!(text.contains("a.ocsp: not a basic OCSP response"), "{text}");
    assert_eq!(
        get(&serving, &server, &["--http3-only"]).as_deref(),
        Ok("content")
    );
    let two = ["--ocsp", &response, "--ocsp", &response];
    let one = ["serve", "--cert", &server.cert, "--key", &server.key];
    let error = refusal(&[&one[..], &two].concat());
    assert!(error.contains("2 --ocsp and 1 --cert"), "{error}");
}

#[test]
fn algorithms_are_chosen_by_name_and_unknown_names_are_errors() {
    let folder = Folder::new();
    let server = certificate_for(&folder, "a.test");
    let serving = serve(&folder, &server, &["--curves", "secp384r1"]);
    for (curves, is_common) in [("X25519MLKEM768:P-384", true), ("x25519", false)] {
        let arguments = ["--http3-only", "--curves", curves];
        assert_eq!(
            get(&serving, &server, &arguments).is_ok(),
            is_common,
            "{curves}"
        );
    }
    let chacha = ["--http2", "--tls13-ciphers", "TLS_CHACHA20_POLY1305_SHA256"];
    assert_eq!(get(&serving, &server, &chacha).as_deref(), Ok("content"));
    let line = refusal(&["serve", "--curves", "curve9"]);
    assert!(
        line.contains("--curves") && line.contains("'curve9': known are"),
        "{line}"
    );
    let line = refusal(&["get", "--tls13-ciphers", "AES", "https://a.test/"]);
    assert!(
        line.contains("--tls13-ciphers") && line.contains("TLS_AES_128_GCM_SHA256"),
        "{line}"
    );
}

#[test]
fn ech_grease_succeeds_and_ech_without_server_support_fails() {
    let folder = Folder::new();
    let server = certificate_for(&folder, "a.test");
    let serving = serve(&folder, &server, &[]);
    for version in ["--http3-only", "--http2"] {
        let grease = [version, "--ech", "grease"];
        assert_eq!(
            get(&serving, &server, &grease).as_deref(),
            Ok("content"),
            "{version}"
        );
        let (code, error) = get(&serving, &server, &[version, "--ech", LIST]).expect_err("no ECH");
        assert_eq!(code, Some(101), "{error}");
        assert!(error.contains("rejected Encrypted Client Hello"), "{error}");
        assert!(error.contains("connect without --ech"), "{error}");
    }
    let line = refusal(&["get", "--ech", "nonsense!", "https://a.test/"]);
    assert!(line.contains("cannot use --ech"), "{line}");
}

/// A configuration with the public name a.test, whose private key does not exist (RFC 9849 §4).
const LIST: &str =
    "ADn+DQA1AQAgACAJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQAEAAEAAQAGYS50ZXN0AAA=";
