//! Several certificates, selected by server name.

use super::serving::Serving;
use crate::common::{Folder, courser, refusal, run};

/// Writes a certificate for these names, and returns the paths of both files.
fn certificate(folder: &Folder, file: &str, names: &[&str]) -> [String; 2] {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("names");
    [
        folder.file(&format!("{file}.pem"), &made.cert.pem()),
        folder.file(&format!("{file}.key"), &made.signing_key.serialize_pem()),
    ]
}

/// Fetches a file of the host, trusting only this certificate.
fn get(serving: &Serving, version: &str, host: &str, certificate: &str) -> Result<String, String> {
    let port = serving.address.port();
    let output = run(&[
        "get",
        version,
        "--cacert",
        certificate,
        "--resolve",
        &format!("{host}:{port}:127.0.0.1"),
        &format!("https://{host}:{port}/a.txt"),
    ]);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

#[test]
fn clients_get_the_certificate_for_their_name() {
    let folder = Folder::new();
    folder.file("a.txt", "content");
    let [cert_a, key_a] = certificate(&folder, "a", &["a.test"]);
    let [cert_b, key_b] = certificate(&folder, "b", &["b.test", "*.b.test"]);
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--cert",
        &cert_a,
        "--key",
        &key_a,
        "--cert",
        &cert_b,
        "--key",
        &key_b,
        &path,
    ];
    let serving = Serving::run(&arguments, Folder::new());
    let names = |index: usize| serving.announced["certificates"][index]["names"].clone();
    assert_eq!(names(0), serde_json::json!(["a.test"]));
    assert_eq!(names(1), serde_json::json!(["b.test", "*.b.test"]));
    for version in ["--http3-only", "--http2", "--http1.1"] {
        for (host, certificate) in [
            ("a.test", &cert_a),
            ("b.test", &cert_b),
            ("x.b.test", &cert_b),
        ] {
            let content = get(&serving, version, host, certificate);
            assert_eq!(content.as_deref(), Ok("content"), "{version} {host}");
        }
        // For other names the server presents the first certificate, which is not valid for them.
        let error = get(&serving, version, "c.test", &cert_a).expect_err("another name");
        assert!(error.contains("a.test"), "{error}");
        assert!(get(&serving, version, "b.test", &cert_a).is_err());
    }
}

#[test]
fn certificates_without_key_or_name_are_rejected() {
    let folder = Folder::new();
    let [cert, key] = certificate(&folder, "a", &["a.test"]);
    let [nameless, its_key] = certificate(&folder, "b", &[]);
    let error = refusal(&["serve", "--cert", &cert, "--cert", &cert, "--key", &key]);
    assert!(error.contains("2 --cert and 1 --key"), "{error}");
    let error = refusal(&["serve", "--cert", &cert, "--key", &its_key]);
    assert!(
        error.contains("a.pem")
            && error.contains("b.key")
            && error.contains("not that of the first"),
        "{error}"
    );
    let error = refusal(&[
        "serve", "--cert", &cert, "--key", &key, "--cert", &nameless, "--key", &its_key,
    ]);
    assert!(
        error.contains("b.pem") && error.contains("no DNS name"),
        "{error}"
    );
}

#[test]
fn chains_that_cost_a_round_trip_are_a_warning() {
    let folder = Folder::new();
    let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]);
    let first = made("a.test").expect("a name");
    // The server sends the others whatever their issuer.
    let chain = (0..9).fold(first.cert.pem(), |chain, number| {
        chain + &made(&format!("{number}.test")).expect("a name").cert.pem()
    });
    let cert = folder.file("chain.pem", &chain);
    let key = folder.file("key.pem", &first.signing_key.serialize_pem());
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--cert",
        &cert,
        "--key",
        &key,
        &path,
    ];
    let mut serving = Serving::run(&arguments, Folder::new());
    // Warnings about sockets may come first.
    let events = (0..4).map(|_| serving.next_of_all_events()["text"].to_string());
    let mut events = events.filter(|text| text.contains("certificate chain"));
    let warning = events.next().expect("a warning");
    assert!(
        warning.contains("a.test")
            && warning.contains("above 3000")
            && warning.contains("certificate compression"),
        "{warning}"
    );
}

/// Names in a certificate must not send escape sequences to the terminal.
#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let folder = Folder::new();
    let [cert, key] = certificate(&folder, "a", &["a.test\u{1b}[2J\r\nurl  b.test"]);
    let path = folder.path().to_str().expect("UTF-8");
    let flags = ["--listen", "127.0.0.1:0", "--cert", &cert, "--key", &key];
    let mut child = courser(&[&["serve", path][..], &flags].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let lines = stdout.lines().map(|line| line.expect("UTF-8"));
    let line = lines
        .into_iter()
        .find(|line| line.starts_with("certificate "));
    child.kill().expect("a running process");
    child.wait().expect("a child");
    let line = line.expect("the line of the certificate");
    assert!(line.contains("a.test?[2J??url  b.test, valid"), "{line:?}");
}
