//! The same service through `courser::serve`: tonic's own client over HTTP/2, and ours over HTTP/3,
//! at one port.

use std::net::SocketAddr;
use std::sync::Arc;

use courser::server::Protocol;
use courser::{ClientConfig, Endpoint, Identity, h3, rustls};
use futures_util::{StreamExt as _, stream};
use http_body::Body as HttpBody;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;
use tonic::transport::Channel;
use tonic::{Code, Request};

use super::words::Text;
use super::words::words_client::WordsClient;
use super::{service, text};
use crate::common::within;

/// Returns a channel of tonic's. tonic leaves the connection to users with their own TLS
/// configuration.
async fn channel(address: SocketAddr, identity: &Identity) -> Channel {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.certificate()).expect("valid root");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let connect = tower::service_fn(move |_: http::Uri| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(address).await?;
            let name = "localhost".try_into().expect("a name");
            connector.connect(name, stream).await.map(TokioIo::new)
        }
    });
    let endpoint = tonic::transport::Endpoint::from_static("https://localhost");
    let connected = within(20, endpoint.connect_with_connector(connect)).await;
    connected.expect("a server")
}

async fn http3(address: SocketAddr, identity: &Identity) -> h3::Client {
    let endpoint = Endpoint::client(crate::common::loopback()).expect("a port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("valid roots");
    let config = config.alpn([h3::ALPN]);
    let connecting = endpoint.connect_with(config, address, "localhost");
    let connection = within(20, connecting.expect("configured")).await;
    h3::Client::new(connection.expect("a server"))
}

/// Makes the four kinds of calls, and checks headers and trailers.
async fn call<C>(channel: C)
where
    C: GrpcService<Body>,
    C::Error: Into<StdError>,
    C::ResponseBody: HttpBody<Data = bytes::Bytes> + Send + 'static,
    <C::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    let origin = "https://localhost".parse().expect("an origin");
    let mut client = WordsClient::with_origin(channel, origin);
    let response = within(20, client.count(Request::new(text("one two three")))).await;
    assert_eq!(response.expect("answered").get_ref().number, 3);
    let status = within(20, client.count(Request::new(text(" ")))).await;
    assert_eq!(status.expect_err("empty").code(), Code::InvalidArgument);

    let words: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let request = Request::new(stream::iter(words.clone().into_iter().map(text)));
    let response = within(20, client.join(request)).await.expect("answered");
    assert_eq!(response.get_ref().text, words.join(" "));
    let response = within(20, client.split(Request::new(text(words.join(" "))))).await;
    let got: Vec<_> = within(20, response.expect("started").into_inner().collect()).await;
    let got: Vec<String> = got
        .into_iter()
        .map(|word: Result<Text, _>| word.expect("a message").text)
        .collect();
    assert_eq!(got, words);
    let request = Request::new(stream::iter(["loud", "words"]).map(text));
    let response = within(20, client.shout(request)).await.expect("started");
    let mut answers = response.into_inner();
    for expected in ["LOUD", "WORDS"] {
        let answer = within(20, answers.message()).await.expect("open");
        assert_eq!(answer.expect("an answer").text, expected);
    }
    assert_eq!(within(20, answers.message()).await.expect("status 0"), None);

    // After two messages follows a status with fields of its own, which can only be in trailers.
    let response = within(20, client.split(Request::new(text("two words lost here")))).await;
    let mut answers = response.expect("started").into_inner();
    for expected in ["two", "words"] {
        let answer = within(20, answers.message()).await.expect("no error yet");
        assert_eq!(answer.expect("an answer").text, expected);
    }
    let status = within(20, answers.message()).await.expect_err("lost");
    assert_eq!(status.code(), Code::DataLoss);
    assert_eq!(status.metadata().get("words-sent").expect("present"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_port_answers_grpc_over_http2_and_http3() {
    let identity = Identity::dev().expect("random numbers");
    let bound = courser::serve("127.0.0.1:0", &identity)
        .bind()
        .expect("a port");
    let (handle, address) = (bound.handle(), bound.local_addr());
    let serving = bound.service(service());
    crate::common::spawn(serving.into_future());
    call(channel(address, &identity).await).await;
    let requests = |protocol| handle.stats().of(protocol).requests;
    assert_eq!(requests(Protocol::Http2), 6, "all of them over HTTP/2");
    assert_eq!(requests(Protocol::Http3), 0);
    call(http3(address, &identity).await).await;
    assert_eq!(requests(Protocol::Http3), requests(Protocol::Http2));
}
