//! The server of gRPC's interoperability tests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue};
use http_body::{Frame, SizeHint};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Response, Status, Streaming};
use tower_service::Service;

use super::pb;
use pb::test_service_server::{TestService, TestServiceServer};

type Outputs = Pin<Box<dyn Stream<Item = Result<pb::StreamingOutputCallResponse, Status>> + Send>>;

/// Implements the calls, and counts those that are in progress.
#[derive(Clone, Default)]
pub struct Test {
    open: Arc<AtomicUsize>,
}

/// A call in progress.
struct Open(Arc<AtomicUsize>);

impl Test {
    /// Returns the number of handlers and streams that have not been dropped.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn begin(&self) -> Open {
        self.open.fetch_add(1, Ordering::SeqCst);
        Open(self.open.clone())
    }

    /// Returns the generated service, which compresses with gzip and echoes metadata.
    pub fn service(&self) -> Echo<TestServiceServer<Self>> {
        let service = TestServiceServer::new(self.clone())
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip);
        Echo(service)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn payload(size: i32) -> Option<pb::Payload> {
    let size = usize::try_from(size).unwrap_or_default();
    Some(pb::Payload {
        r#type: 0,
        body: vec![0; size],
    })
}

fn expect_status(status: Option<&pb::EchoStatus>) -> Result<(), Status> {
    match status {
        Some(status) if status.code != 0 => {
            Err(Status::new(Code::from(status.code), &status.message))
        }
        _ => Ok(()),
    }
}

fn is_true(value: Option<&pb::BoolValue>) -> bool {
    value.is_some_and(|it| it.value)
}

/// Returns an error if a message should have been compressed. tonic does not tell about single messages.
fn expect_compressed<T>(
    request: &Request<T>,
    expected: Option<&pb::BoolValue>,
) -> Result<(), Status> {
    let is_coded = request
        .metadata()
        .get("grpc-encoding")
        .is_some_and(|coding| coding != "identity");
    match is_true(expected) && !is_coded {
        true => Err(Status::invalid_argument("the message is not compressed")),
        false => Ok(()),
    }
}

/// Returns the messages that a request asks for.
fn outputs(
    request: &pb::StreamingOutputCallRequest,
) -> impl Stream<Item = pb::StreamingOutputCallResponse> + Send + use<> {
    let parameters = request.response_parameters.clone();
    stream::iter(parameters).then(|wanted| async move {
        let pause = u64::try_from(wanted.interval_us).unwrap_or_default();
        if pause > 0 {
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
        pb::StreamingOutputCallResponse {
            payload: payload(wanted.size),
        }
    })
}

#[tonic::async_trait]
impl TestService for Test {
    async fn empty_call(&self, _: Request<pb::Empty>) -> Result<Response<pb::Empty>, Status> {
        Ok(Response::new(pb::Empty {}))
    }

    async fn unary_call(
        &self,
        request: Request<pb::SimpleRequest>,
    ) -> Result<Response<pb::SimpleResponse>, Status> {
        let _open = self.begin();
        expect_compressed(&request, request.get_ref().expect_compressed.as_ref())?;
        let request = request.into_inner();
        expect_status(request.response_status.as_ref())?;
        let mut response = Response::new(pb::SimpleResponse {
            payload: payload(request.response_size),
        });
        if !is_true(request.response_compressed.as_ref()) {
            response.disable_compression();
        }
        Ok(response)
    }

    type StreamingOutputCallStream = Outputs;

    async fn streaming_output_call(
        &self,
        request: Request<pb::StreamingOutputCallRequest>,
    ) -> Result<Response<Outputs>, Status> {
        let open = self.begin();
        let request = request.into_inner();
        let end = expect_status(request.response_status.as_ref());
        let end = stream::iter(end.err().map(Err));
        let all = outputs(&request).map(Ok).chain(end).inspect(move |_| {
            let _ = &open;
        });
        Ok(Response::new(Box::pin(all)))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<pb::StreamingInputCallRequest>>,
    ) -> Result<Response<pb::StreamingInputCallResponse>, Status> {
        let _open = self.begin();
        let is_coded = expect_compressed(&request, Some(&pb::BoolValue { value: true }));
        let mut messages = request.into_inner();
        let mut sum = 0;
        while let Some(message) = messages.message().await? {
            if is_true(message.expect_compressed.as_ref()) {
                is_coded.clone()?;
            }
            sum += message.payload.map_or(0, |payload| payload.body.len());
        }
        Ok(Response::new(pb::StreamingInputCallResponse {
            aggregated_payload_size: i32::try_from(sum).unwrap_or(i32::MAX),
        }))
    }

    type FullDuplexCallStream = Outputs;

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<pb::StreamingOutputCallRequest>>,
    ) -> Result<Response<Outputs>, Status> {
        let open = self.begin();
        let all = request.into_inner().flat_map(move |request| {
            let _ = &open;
            match request {
                Err(status) => stream::iter([Err(status)]).boxed(),
                Ok(request) => match expect_status(request.response_status.as_ref()) {
                    Err(status) => stream::iter([Err(status)]).boxed(),
                    Ok(()) => outputs(&request).map(Ok).boxed(),
                },
            }
        });
        Ok(Response::new(Box::pin(all)))
    }

    type HalfDuplexCallStream = Outputs;

    async fn half_duplex_call(
        &self,
        request: Request<Streaming<pb::StreamingOutputCallRequest>>,
    ) -> Result<Response<Outputs>, Status> {
        let requests: Vec<_> = request.into_inner().collect().await;
        let requests: Result<Vec<_>, _> = requests.into_iter().collect();
        let all = stream::iter(requests?)
            .flat_map(|request| outputs(&request))
            .map(Ok);
        Ok(Response::new(Box::pin(all)))
    }

    async fn unimplemented_call(
        &self,
        _: Request<pb::Empty>,
    ) -> Result<Response<pb::Empty>, Status> {
        Err(Status::unimplemented("no server implements it"))
    }
}

/// Returns two fields of a request with the response: one in its header section, one in its trailers, where tonic puts
/// no metadata of a call that succeeds.
#[derive(Clone)]
pub struct Echo<S>(S);

impl<S: tonic::server::NamedService> tonic::server::NamedService for Echo<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for Echo<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let initial = request.headers().get(INITIAL).cloned();
        let trailing = request.headers().get(TRAILING).cloned();
        let answer = self.0.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            if let Some(value) = initial {
                response.headers_mut().insert(INITIAL, value);
            }
            Ok(match trailing {
                None => response,
                Some(value) => response.map(|inner| Body::new(Trailing { inner, value })),
            })
        })
    }
}

struct Trailing {
    inner: Body,
    value: HeaderValue,
}

impl http_body::Body for Trailing {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let value = self.value.clone();
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_ok(|mut frame| {
                let trailers: Option<&mut HeaderMap> = frame.trailers_mut();
                if let Some(trailers) = trailers {
                    trailers.insert(TRAILING, value);
                }
                frame
            })
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

pub const INITIAL: &str = "x-grpc-test-echo-initial";
pub const TRAILING: &str = "x-grpc-test-echo-trailing-bin";
