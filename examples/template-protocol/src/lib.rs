//! A protocol: clients ask questions, and a server answers each on its stream.

use std::error::Error;
use std::time::Duration;

use courser::{Connection, Endpoint, runtime};

/// The name of the protocol (ALPN), which both ends must know.
pub const ALPN: &str = "questions/1";

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Serves clients until the endpoint is closed.
pub async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        runtime::spawn(async move {
            // A client that fails or goes away is no concern of the others.
            if let Ok(connection) = incoming.await {
                let _ = answer_all(connection).await;
            }
        });
    }
}

async fn answer_all(connection: Connection) -> Result {
    loop {
        let (mut send, mut receive) = connection.accept_bi().await?;
        runtime::spawn(async move {
            let question = receive.read_to_end(MAX_QUESTION).await?;
            let answer = format!("{} bytes", question.len());
            send.write_all(answer.as_bytes()).await?;
            send.finish()?;
            Result::Ok(())
        });
    }
}

/// Asks a question, and waits for the answer.
pub async fn ask(connection: &Connection, question: &[u8]) -> Result<String> {
    let exchange = async {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(question).await?;
        send.finish()?;
        let answer = receive.read_to_end(MAX_ANSWER).await?;
        Result::Ok(String::from_utf8(answer)?)
    };
    runtime::timeout(PATIENCE, exchange).await?
}

const MAX_QUESTION: usize = 1 << 20;
const MAX_ANSWER: usize = 1 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
