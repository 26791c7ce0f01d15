//! HTTP/3 on real sockets: both of our ends, and raw streams for misbehaving peers.

mod datagrams;
mod exchange;
mod extensions;
mod going_away;
mod heads;
mod hostile;
mod interim;
mod large_fields;
mod records;
mod rules;
mod senders;
mod sessions;
mod small_windows;
mod upgrade;

use std::convert::Infallible;
use std::future::Future;

use crate::common::{Pair, pair};
use bytes::Bytes;
use courser::h3::HttpService;
use courser::{Connection, h3};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use tower::util::BoxCloneService;

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// Creates a body of these bytes.
fn full(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, std::io::Error> {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// Creates a service from a function.
fn tower_of<F>(service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static) -> Boxed
where
    F: Future<Output = Answer> + Send + 'static,
{
    boxed(move |request| {
        let answer = service(request);
        async move { Ok::<_, Infallible>(answer.await) }
    })
}

/// Creates tower's service from a function, with one type for all of them: `h3::serve` is compiled
/// for each type of service.
fn boxed<F>(service: impl FnMut(Request<h3::Body>) -> F + Clone + Send + 'static) -> Boxed
where
    F: Future<Output = Result<Answer, Infallible>> + Send + 'static,
{
    BoxCloneService::new(tower::service_fn(service))
}

type Boxed = BoxCloneService<Request<h3::Body>, Answer, Infallible>;

/// Creates a connection whose server answers with `service`.
async fn serve<F>(
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) -> (Pair, h3::Client)
where
    F: Future<Output = Answer> + Send + 'static,
{
    serve_as(|server| h3::serve(server, tower_of(service))).await
}

/// Creates a connection whose server answers as `begin` defines.
async fn serve_as<S: HttpService<h3::Body>>(
    begin: impl FnOnce(Connection) -> h3::Serve<S>,
) -> (Pair, h3::Client) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    crate::common::spawn(begin(server).into_future());
    (pair, h3::Client::new(client))
}

fn get(path: &str) -> Request<h3::Empty> {
    Request::get(format!("https://localhost{path}"))
        .body(h3::Empty)
        .expect("a request")
}

async fn text(response: Response<h3::Body>) -> String {
    let bytes = response.into_body().collect().await.expect("a body");
    String::from_utf8(bytes.to_bytes().to_vec()).expect("text")
}

/// Fails a test that hangs.
async fn within<T>(future: impl Future<Output = T>) -> T {
    crate::common::within(20, future).await
}

/// Creates a body of these frames.
fn frames<S>(stream: S) -> UnsyncBoxBody<Bytes, std::io::Error>
where
    S: futures_util::Stream<Item = Result<http_body::Frame<Bytes>, std::io::Error>>
        + Send
        + 'static,
{
    StreamBody::new(stream).boxed_unsync()
}
