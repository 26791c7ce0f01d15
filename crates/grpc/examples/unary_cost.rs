//! The cost of small unary calls, one after the other, with client and server in one process: `unary_cost h3|h2|tonic CALLS`.
//! `h3` and `h2` are the channel of this crate, `tonic` is that of tonic over HTTP/2 and TLS. The server is the same. Count
//! instructions of two numbers of calls and divide the difference.

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

use std::net::SocketAddr;
use std::sync::Arc;

use courser_client::HttpVersion;
use courser_grpc::{Channel, ServerLayer};
use courser_quic::{Identity, rustls};
use hyper_util::rt::TokioIo;
use pb::test_service_client::TestServiceClient;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic::codegen::{Bytes, StdError};
use tower_layer::Layer as _;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, calls] = arguments.as_slice() else {
        return Err("usage: unary_cost h3|h2|tonic CALLS".into());
    };
    let calls = calls.parse()?;
    let identity = Identity::dev()?;
    let service = pb::test_service_server::TestServiceServer::new(service::Test::default());
    let bound = courser_server::serve("127.0.0.1:0", &identity).bind()?;
    let address = bound.local_addr();
    tokio::spawn(
        bound
            .service(ServerLayer::new().layer(service))
            .into_future(),
    );
    let version = match kind.as_str() {
        "tonic" => return make(tonic_channel(address, &identity).await?, calls).await,
        "h3" => HttpVersion::Http3Only,
        _ => HttpVersion::Http2PriorKnowledge,
    };
    let channel = Channel::builder(format!("https://localhost:{}", address.port()))
        .version(version)
        .root(identity.certificate())
        .configure(|it| it.platform_roots(false).family(courser_client::Family::V4))
        .build()?;
    make(channel, calls).await
}

async fn make<C>(channel: C, calls: u32) -> Result
where
    C: tonic::client::GrpcService<Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as http_body::Body>::Error: Into<StdError> + Send,
{
    let origin = "https://localhost".parse()?;
    let mut client = TestServiceClient::with_origin(channel, origin);
    let request = pb::SimpleRequest {
        response_size: 100,
        payload: Some(pb::Payload {
            r#type: 0,
            body: vec![0; 100],
        }),
        ..pb::SimpleRequest::default()
    };
    for _ in 0..calls {
        client.unary_call(request.clone()).await?;
    }
    Ok(())
}

async fn tonic_channel(
    address: SocketAddr,
    identity: &Identity,
) -> Result<tonic::transport::Channel> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate())?;
    let mut config = rustls::ClientConfig::builder_with_provider(courser_quic::crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let connect = tower::service_fn(move |_: http::Uri| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let name = "localhost".try_into().map_err(std::io::Error::other)?;
            connector.connect(name, stream).await.map(TokioIo::new)
        }
    });
    let endpoint = tonic::transport::Endpoint::from_static("https://localhost");
    Ok(endpoint.connect_with_connector(connect).await?)
}
