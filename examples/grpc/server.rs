//! The server: the implementation of the methods, and deadlines.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use courser::h3;
use futures_util::{StreamExt as _, stream};
use http_body::Body as HttpBody;
use tonic::body::Body;
use tonic::codegen::{StdError, http};
use tonic::{Request, Response, Status, Streaming};

use super::words::{self, Answer, Number, Text, Texts, Words};

/// Answers the calls that come on a connection.
pub async fn serve(connection: courser::Connection) -> Result<(), h3::Error> {
    h3::serve(connection, tower::service_fn(answer)).await
}

/// Answers a call, whatever the version of HTTP it came with: a service for `courser::serve` too.
pub async fn answer<B>(request: http::Request<B>) -> Result<http::Response<Body>, Infallible>
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    Ok(within_deadline(Arc::new(Counting), request).await)
}

/// The client's deadline, which tonic itself leaves to a layer of its own server.
async fn within_deadline<W, B>(words: Arc<W>, request: http::Request<B>) -> http::Response<Body>
where
    W: Words,
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    let timeout = request.headers().get("grpc-timeout").map(timeout);
    let answer = words::route(words, request);
    match timeout {
        None => answer.await,
        Some(None) => Status::invalid_argument("grpc-timeout: digits and a unit").into_http(),
        Some(Some(timeout)) => match tokio::time::timeout(timeout, answer).await {
            Ok(response) => response,
            Err(_) => Status::deadline_exceeded("the deadline has passed").into_http(),
        },
    }
}

/// At most eight digits and a unit.
fn timeout(value: &http::HeaderValue) -> Option<Duration> {
    let value = value.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

struct Counting;

impl Words for Counting {
    async fn count(&self, request: Request<Text>) -> Answer<Number> {
        let number = request.get_ref().text.split_whitespace().count() as u64;
        if number == 0 {
            return Err(Status::invalid_argument("the text has no words"));
        }
        let mut response = Response::new(Number { number });
        // The client's metadata is returned.
        if let Some(id) = request.metadata().get("request-id") {
            response.metadata_mut().insert("request-id", id.clone());
        }
        Ok(response)
    }

    async fn split(&self, request: Request<Text>) -> Answer<Texts> {
        let text = request.into_inner().text;
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let texts = stream::iter(words).enumerate().map(|(sent, text)| {
            if text == "lost" {
                let mut status = Status::data_loss("a word was lost");
                status.metadata_mut().insert("words-sent", sent.into());
                return Err(status);
            }
            Ok(Text { text })
        });
        Ok(Response::new(Box::pin(texts)))
    }

    async fn join(&self, request: Request<Streaming<Text>>) -> Answer<Text> {
        let mut stream = request.into_inner();
        let mut words = Vec::new();
        while let Some(text) = stream.message().await? {
            words.push(text.text);
        }
        let text = words.join(" ");
        Ok(Response::new(Text { text }))
    }

    async fn shout(&self, request: Request<Streaming<Text>>) -> Answer<Texts> {
        let texts = request.into_inner().map(|text| {
            let text = text?.text.to_uppercase();
            Ok(Text { text })
        });
        Ok(Response::new(Box::pin(texts)))
    }

    async fn wait(&self, request: Request<Number>) -> Answer<Number> {
        let number = request.into_inner();
        tokio::time::sleep(Duration::from_millis(number.number)).await;
        Ok(Response::new(number))
    }
}
