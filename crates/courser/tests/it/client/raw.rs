//! Servers whose bytes no HTTP library wrote or read.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// An HTTP/1.1 server without TLS that records requests and answers with given bytes.
pub struct Raw {
    pub port: u16,
    received: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Raw {
    /// Starts a server that reads each request until these bytes, sends an answer and closes the connection.
    /// The last answer is sent again to further connections.
    pub async fn start(end: &'static [u8], answers: &'static [&'static [u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (sender, received) = mpsc::unbounded_channel();
        crate::common::spawn(async move {
            for number in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else {
                    return;
                };
                let answer = answers[number.min(answers.len() - 1)];
                let request = read_until(&mut stream, end).await;
                let _ = sender.send(request);
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
                // A reset would discard the answer at the client.
                let mut rest = Vec::new();
                crate::common::spawn(async move {
                    let _ = stream.read_to_end(&mut rest).await;
                });
            }
        });
        Self { port, received }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the next request as text.
    pub async fn request(&mut self) -> String {
        let request = super::within(self.received.recv()).await;
        String::from_utf8(request.expect("a request")).expect("text")
    }
}

async fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    while !request.ends_with(end) {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => break,
            Ok(read) => request.extend(&part[..read]),
        }
    }
    request
}
