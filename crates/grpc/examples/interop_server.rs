//! The server of gRPC's interoperability tests: `interop_server ADDRESS CERTIFICATE.pem KEY.pem`. `interop/grpc/run` starts
//! it.

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
#[allow(dead_code, reason = "the tests use all of it")]
mod service;

use courser_grpc::ServerLayer;
use courser_server::Certificates;
use tower_layer::Layer as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, certificate, key] = arguments.as_slice() else {
        return Err("usage: interop_server ADDRESS CERTIFICATE.pem KEY.pem".into());
    };
    let certificates = Certificates::pem_files(certificate, key)?;
    let service = ServerLayer::new().layer(service::Test::default().service());
    let server = courser_server::serve(address.as_str(), certificates).bind()?;
    println!("listening on {}", server.local_addr());
    server.service(service).await?;
    Ok(())
}
