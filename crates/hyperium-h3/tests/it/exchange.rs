//! Requests and responses between every two implementations.

use std::convert::Infallible;

use bytes::Bytes;
use courser::h3 as own;
use h3::client::SendRequest;
use h3::quic;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};

use super::program;
use super::setup::{Pair, pattern, quinn_client, quinn_server, within};

/// Runs all requests of the client program against the server program.
async fn check<O>(mut client: SendRequest<O, Bytes>)
where
    O: quic::OpenStreams<Bytes> + Clone + Send + 'static,
    O::BidiStream: quic::BidiStream<Bytes> + Send,
    <O::BidiStream as quic::BidiStream<Bytes>>::SendStream: Send,
    <O::BidiStream as quic::BidiStream<Bytes>>::RecvStream: Send,
{
    let answer = program::get(&mut client, "/missing").await.expect("answer");
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let answer = program::get(&mut client, "/bytes/0").await.expect("answer");
    assert_eq!(answer.body.len(), 0);
    // Larger than any flow control window.
    let answer = program::get(&mut client, "/bytes/20000000")
        .await
        .expect("answer");
    assert!(answer.body == pattern(20_000_000), "the body differs");
    let body = Bytes::from(pattern(20_000_001));
    let answer = program::echo(&mut client, body.clone())
        .await
        .expect("answer");
    assert!(answer.body == body, "the echo differs");
    let trailers = answer.trailers.expect("trailers");
    assert_eq!(trailers["x-checked"], "yes");
    // More streams than the initial limit.
    let tasks: Vec<_> = (0..500)
        .map(|n: usize| {
            let mut client = client.clone();
            tokio::spawn(async move {
                let body = Bytes::from(pattern(n * 10));
                let answer = program::echo(&mut client, body.clone()).await;
                assert_eq!(answer.expect("answer").body, body);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Runs [`check`] on a connection while driving it, and closes it afterwards.
async fn check_on<C>(connection: C)
where
    C: quic::Connection<Bytes> + Send + 'static,
    C::RecvStream: Send,
    C::SendStream: Send,
    C::BidiStream: quic::BidiStream<Bytes> + Send,
    <C::BidiStream as quic::BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as quic::BidiStream<Bytes>>::RecvStream: Send,
    C::OpenStreams: Clone + Send + 'static,
{
    let (mut driver, client) = h3::client::new(connection).await.expect("a connection");
    let driven = tokio::spawn(async move { driver.wait_idle().await });
    within(check(client)).await;
    // The client closes the connection when the last handle for requests is dropped.
    let end = within(driven).await.expect("no panic");
    assert!(end.is_h3_no_error(), "{end}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_on_courser_at_both_ends() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let serving = tokio::spawn(program::serve(courser_hyperium_h3::Connection::new(server)));
    check_on(courser_hyperium_h3::Connection::new(client)).await;
    let end = within(serving).await.expect("no panic");
    assert!(end.is_err_and(|end| end.is_h3_no_error()), "an error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_on_quinn_and_a_server_on_courser() {
    let pair = Pair::new();
    let (client, server) = tokio::join!(
        quinn_client(pair.address(), pair.certificate.clone()),
        pair.accept()
    );
    tokio::spawn(program::serve(courser_hyperium_h3::Connection::new(server)));
    check_on(h3_quinn::Connection::new(client.1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_on_courser_and_a_server_on_quinn() {
    let (server, client) = quinn_server();
    let address = server.local_addr().expect("bound");
    tokio::spawn(async move {
        let connection = server.accept().await.expect("open").await;
        program::serve(h3_quinn::Connection::new(connection.expect("handshake"))).await
    });
    let connection = client.connect(address, "localhost").expect("configured");
    check_on(courser_hyperium_h3::Connection::new(
        connection.await.expect("handshake"),
    ))
    .await;
}

/// The server program as a service of courser's own HTTP/3.
async fn own_answer(
    request: Request<own::Body>,
) -> Result<Response<http_body_util::Either<own::Body, Full<Bytes>>>, Infallible> {
    use http_body_util::Either::{Left, Right};
    let path = request.uri().path().to_owned();
    if path == "/echo" {
        return Ok(Response::new(Left(request.into_body())));
    }
    let mut response = Response::new(Right(Full::default()));
    match path.strip_prefix("/bytes/") {
        Some(count) => {
            let bytes = pattern(count.parse().expect("a number"));
            *response.body_mut() = Right(Full::new(bytes.into()));
        }
        None => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

fn serve_own(connection: courser::Connection) {
    tokio::spawn(own::serve(connection, tower::service_fn(own_answer)).into_future());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_on_courser_and_coursers_own_server() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    serve_own(server);
    check_on(courser_hyperium_h3::Connection::new(client)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_on_quinn_and_coursers_own_server() {
    let pair = Pair::new();
    let (client, server) = tokio::join!(
        quinn_client(pair.address(), pair.certificate.clone()),
        pair.accept()
    );
    serve_own(server);
    check_on(h3_quinn::Connection::new(client.1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coursers_own_client_and_a_server_on_courser() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    tokio::spawn(program::serve(courser_hyperium_h3::Connection::new(server)));
    let client = own::Client::new(client);
    let body = Bytes::from(pattern(20_000_000));
    let request = Request::post("https://localhost/echo")
        .body(Full::new(body.clone()))
        .expect("a request");
    let response = within(client.send(request)).await.expect("answered");
    let echoed = within(response.into_body().collect())
        .await
        .expect("a complete message");
    assert!(echoed.to_bytes() == body, "the echo differs");
    let tasks: Vec<_> = (0..500usize)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let request = Request::get(format!("https://localhost/bytes/{n}"))
                    .body(own::Empty)
                    .expect("a request");
                let response = client.send(request).await.expect("answered");
                let body = response
                    .into_body()
                    .collect()
                    .await
                    .expect("a complete message");
                assert_eq!(body.to_bytes(), pattern(n));
            })
        })
        .collect();
    for task in tasks {
        within(task).await.expect("no panic");
    }
}

/// Many servers end each body with an empty DATA frame. The client must not treat that as an attack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coursers_own_client_accepts_empty_frames() {
    let pair = Pair::new();
    let (client, server) = pair.connect().await;
    let serving = async move {
        let connection = courser_hyperium_h3::Connection::new(server);
        let mut connection = h3::server::Connection::<_, Bytes>::new(connection).await?;
        while let Some(resolver) = connection.accept().await? {
            let (_, mut stream) = resolver.resolve_request().await?;
            stream.send_response(Response::new(())).await?;
            stream.send_data(Bytes::from("all")).await?;
            stream.send_data(Bytes::new()).await?;
            stream.finish().await?;
        }
        Ok::<_, program::ProgramError>(())
    };
    tokio::spawn(serving);
    let client = own::Client::new(client);
    for _ in 0..1000 {
        let request = Request::get("https://localhost/")
            .body(own::Empty)
            .expect("a request");
        let response = within(client.send(request)).await.expect("answered");
        let body = within(response.into_body().collect())
            .await
            .expect("a complete message");
        assert_eq!(body.to_bytes(), "all");
    }
}
