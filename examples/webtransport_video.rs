//! Live pictures whose size follows the link: groups on streams with orders and deadlines, and `send_rate`.
//! `cargo run -p courser --features webtransport --example webtransport_video`, with an address as an optional
//! argument, and then the page.

#[path = "webtransport_video/picture.rs"]
mod picture;

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{Html, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use courser::server::{Certificates, ServerHandle};
use courser::webtransport::{self, Config, SendStream, Session};
use tokio::sync::mpsc;

use self::picture::{FRAMES_PER_SECOND, GROUP, Size};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PAGE: &str = include_str!("webtransport_video/page.html");
/// A group that is not complete by then, counted from its first frame, is of no use any more.
const DEADLINE: Duration = Duration::from_secs(1);
const TOO_LATE: u32 = 1;

async fn watch(mut request: Request) -> Response {
    let upgrade = webtransport::upgrade(&mut request).protocols(["video.1"]);
    upgrade
        .accept(|session| async move { play(&session).await })
        .await
}

async fn play(session: &Session) -> Result {
    let mut tick = tokio::time::interval(Duration::from_secs(1) / FRAMES_PER_SECOND);
    let mut size = Size::default();
    for group in 0.. {
        size.adapt(session);
        let mut stream = session.open_uni().await?;
        // The newest group first: the picture stays current.
        stream.set_order(group.into())?;
        stream.set_deadline(Some(DEADLINE), TOO_LATE)?;
        // A task of its own: a group that waits for the link does not delay the next one.
        let (frames, waiting) = mpsc::unbounded_channel();
        tokio::spawn(send_group(stream, waiting));
        for number in 0..GROUP {
            tick.tick().await;
            let _ = frames.send(picture::draw(group, number, size.width()));
        }
    }
    Ok(())
}

async fn send_group(mut stream: SendStream, mut frames: mpsc::UnboundedReceiver<Bytes>) -> Result {
    while let Some(frame) = frames.recv().await {
        stream.write_chunk(frame).await?;
    }
    Ok(stream.finish()?)
}

async fn hash(State(server): State<ServerHandle>) -> String {
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
        .route("/video", any(watch))
        .with_state(server.handle());
    println!("https://{}/", server.local_addr());
    Ok(server.service(app).await.map(drop)?)
}
