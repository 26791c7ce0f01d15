//! The client of gRPC's interoperability tests: `interop_client URI ROOT.pem h3|h2 CASE...`. Without a case it runs all of them
//! that the server is known to have. `interop/grpc/run` starts it.

#[path = "../tests/interop/cases.rs"]
mod cases;
#[path = "../tests/interop/pb.rs"]
#[allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::unwrap_used,
    missing_docs,
    reason = "generated"
)]
mod pb;
#[path = "../tests/interop/service.rs"]
#[allow(dead_code, reason = "the cases use two names of it")]
mod service;

use std::time::Duration;

use cases::CASES;
use courser_client::HttpVersion;
use courser_grpc::Channel;
use courser_quic::rustls::pki_types::CertificateDer;
use courser_quic::rustls::pki_types::pem::PemObject as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, root, version, wanted @ ..] = arguments.as_slice() else {
        return Err("usage: interop_client URI ROOT.pem h3|h2 CASE...".into());
    };
    let version = match version.as_str() {
        "h3" => HttpVersion::Http3Only,
        _ => HttpVersion::Http2PriorKnowledge,
    };
    let channel = Channel::builder(uri)
        .root(CertificateDer::from_pem_file(root)?)
        .version(version)
        .configure(|client| client.family(courser_client::Family::V4))
        .build()?;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| it == name);
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| is_wanted(name)) {
        let case = tokio::spawn(case(channel.clone()));
        let is_passed = matches!(
            tokio::time::timeout(Duration::from_secs(30), case).await,
            Ok(Ok(()))
        );
        println!("{name} {}", if is_passed { "passed" } else { "FAILED" });
        failed.extend((!is_passed).then_some(*name));
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join(" ")).into()),
    }
}
