//! A chat room over WebTransport: messages on streams, and who is typing in datagrams, which may be lost.
//! `cargo run -p courser --features webtransport --example webtransport_chat`, with an address as an optional
//! argument, and then the page in two windows.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{Html, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use courser::server::{Certificates, ServerHandle};
use courser::webtransport::{self, Config, Session};
use tokio::sync::broadcast;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Clone, Debug)]
enum Said {
    Message(Bytes),
    Typing(Bytes),
}

type Room = broadcast::Sender<Said>;

const PAGE: &str = include_str!("webtransport_chat/page.html");

async fn join(State((room, _)): State<(Room, ServerHandle)>, mut request: Request) -> Response {
    let upgrade = webtransport::upgrade(&mut request).protocols(["chat.1"]);
    upgrade
        .accept(|session| async move { chat(&session, &room).await })
        .await
}

/// Passes on what a member says, and what the others say. Each message is a stream of its own.
async fn chat(session: &Session, room: &Room) -> Result {
    let mut heard = room.subscribe();
    loop {
        tokio::select! {
            stream = session.accept_uni() => {
                let text = stream?.read_to_end(1000).await?;
                room.send(Said::Message(text.into()))?;
            }
            name = session.datagrams().receive() => {
                room.send(Said::Typing(name.ok_or("closed")?))?;
            }
            said = heard.recv() => match said {
                Ok(Said::Message(text)) => {
                    let mut stream = session.open_uni().await?;
                    stream.write_all(&text).await?;
                    stream.finish()?;
                }
                // A datagram is worth one attempt.
                Ok(Said::Typing(name)) => drop(session.datagrams().send(&name)),
                Err(_) => println!("{} is too slow for the room", session.id()),
            },
        }
    }
}

/// Returns the hash by which browsers trust the certificate. It changes when the certificate is renewed.
async fn hash(State((_, server)): State<(Room, ServerHandle)>) -> String {
    format!("{:?}", server.certificates()[0].sha256)
}

#[tokio::main]
async fn main() -> Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:4433".into());
    let server = courser::serve(address.as_str(), Certificates::dev(["localhost"])?);
    let server = server.webtransport(Config::new()).bind()?;
    let app = Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/hash", get(hash))
        .route("/chat", any(join))
        .with_state((broadcast::channel(100).0, server.handle()));
    println!("https://{}/", server.local_addr());
    Ok(server.service(app).await.map(drop)?)
}
