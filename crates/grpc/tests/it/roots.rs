//! Roots in PEM text.

use courser_client::{ErrorKind, Family, HttpVersion};
use courser_grpc::Channel;
use courser_quic::Identity;
use tonic::Code;

use super::common::{Client, IDENTITY, start, within};
use super::pb::Empty;

/// The certificate as people have it.
fn pem() -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(IDENTITY.certificate());
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_of_a_pem_text_and_of_a_file_are_trusted() {
    let server = start();
    let builder = || {
        Channel::builder(server.uri())
            .version(HttpVersion::Http3Only)
            .configure(|client| client.platform_roots(false).family(Family::V4))
    };
    let path = std::env::temp_dir().join(format!("courser-grpc-root-{}.pem", std::process::id()));
    std::fs::write(&path, pem()).expect("a folder for temporary files");
    let of_file = builder().root_pem_file(&path);
    std::fs::remove_file(&path).expect("written above");
    let of_text = builder().root_pem(pem().as_bytes());
    for trusting in [of_text, of_file] {
        let channel = trusting.expect("a certificate").build().expect("valid");
        within(Client::new(channel).empty_call(Empty {}))
            .await
            .expect("answered");
    }
    let other = Identity::dev().expect("random numbers").certificate();
    let channel = builder().root(other).build().expect("valid settings");
    let error = within(Client::new(channel).empty_call(Empty {})).await;
    assert_eq!(error.expect_err("not trusted").code(), Code::Unavailable);
}

#[test]
fn text_without_a_certificate_and_missing_file_are_named() {
    let builder = || Channel::builder("https://localhost");
    let error = builder().root_pem(b"none").expect_err("no certificate");
    assert_eq!(error.kind(), ErrorKind::Config);
    let error = builder().root_pem_file("no/such.pem").expect_err("no file");
    assert!(error.to_string().contains("no/such.pem"), "{error}");
}
