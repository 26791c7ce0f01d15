//! The implementation of the methods.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use tonic::{Request, Response, Status, Streaming};

use super::words::words_server::Words;
use super::words::{Number, Text};

type Answer<T> = Result<Response<T>, Status>;
type Texts = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

pub struct Counting;

#[tonic::async_trait]
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

    type SplitStream = Texts;

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

    type ShoutStream = Texts;

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
