//! The output of tonic-build for `words.proto`, written by hand so that no protoc is needed: messages,
//! a trait for the server, a client.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{self, Uri};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Text {
    #[prost(string, tag = "1")]
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Number {
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

pub type Answer<T> = Result<Response<T>, Status>;
pub type Texts = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

/// The service, which a server implements.
pub trait Words: Send + Sync + 'static {
    fn count(&self, request: Request<Text>) -> impl Future<Output = Answer<Number>> + Send;
    fn split(&self, request: Request<Text>) -> impl Future<Output = Answer<Texts>> + Send;
    fn join(&self, request: Request<Streaming<Text>>) -> impl Future<Output = Answer<Text>> + Send;
    fn shout(
        &self,
        request: Request<Streaming<Text>>,
    ) -> impl Future<Output = Answer<Texts>> + Send;
    fn wait(&self, request: Request<Number>) -> impl Future<Output = Answer<Number>> + Send;
}

/// Answers a request, whatever the version of HTTP it came with.
pub async fn route<W: Words, B>(words: Arc<W>, request: http::Request<B>) -> http::Response<Body>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    // A method as a service that owns what it needs.
    macro_rules! method {
        ($method:ident) => {
            service_fn(move |request| {
                let words = words.clone();
                async move { words.$method(request).await }
            })
        };
    }
    let mut texts = tonic::server::Grpc::new(ProstCodec::<Text, Text>::default());
    let mut numbers = tonic::server::Grpc::new(ProstCodec::<Number, Number>::default());
    let mut counts = tonic::server::Grpc::new(ProstCodec::<Number, Text>::default());
    match request.uri().path() {
        "/words.Words/Count" => counts.unary(method!(count), request).await,
        "/words.Words/Split" => texts.server_streaming(method!(split), request).await,
        "/words.Words/Join" => texts.client_streaming(method!(join), request).await,
        "/words.Words/Shout" => texts.streaming(method!(shout), request).await,
        "/words.Words/Wait" => numbers.unary(method!(wait), request).await,
        path => Status::unimplemented(format!("no method {path}")).into_http(),
    }
}

/// The client, over anything that sends requests.
#[derive(Clone)]
pub struct WordsClient<C>(tonic::client::Grpc<C>);

impl<C> WordsClient<C>
where
    C: GrpcService<Body>,
    C::ResponseBody: HttpBody + Send + 'static,
    <C::ResponseBody as HttpBody>::Error: Into<StdError>,
{
    pub fn new(channel: C, origin: Uri) -> Self {
        Self(tonic::client::Grpc::with_origin(channel, origin))
    }

    pub async fn count(&mut self, request: Request<Text>) -> Answer<Number> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/words.Words/Count");
        self.0.unary(request, path, ProstCodec::default()).await
    }

    pub async fn split(&mut self, request: Request<Text>) -> Answer<Streaming<Text>> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/words.Words/Split");
        let codec = ProstCodec::default();
        self.0.server_streaming(request, path, codec).await
    }

    pub async fn join<S>(&mut self, request: Request<S>) -> Answer<Text>
    where
        S: Stream<Item = Text> + Send + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static("/words.Words/Join");
        let codec = ProstCodec::default();
        self.0.client_streaming(request, path, codec).await
    }

    pub async fn shout<S>(&mut self, request: Request<S>) -> Answer<Streaming<Text>>
    where
        S: Stream<Item = Text> + Send + 'static,
    {
        self.ready().await?;
        let path = PathAndQuery::from_static("/words.Words/Shout");
        self.0.streaming(request, path, ProstCodec::default()).await
    }

    pub async fn wait(&mut self, request: Request<Number>) -> Answer<Number> {
        self.ready().await?;
        let path = PathAndQuery::from_static("/words.Words/Wait");
        self.0.unary(request, path, ProstCodec::default()).await
    }

    async fn ready(&mut self) -> Result<(), Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unavailable(error.into().to_string()))
    }
}
