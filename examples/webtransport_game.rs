//! A field of dots: places in datagrams 20 times a second, names and chat on streams.
//! `cargo run -p courser --features webtransport --example webtransport_game`, with an address as an optional argument,
//! and then the page in two windows.

#[path = "webtransport_game/world.rs"]
mod world;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{Html, Response};
use axum::routing::{any, get};
use courser::DatagramOptions;
use courser::server::{Certificates, ServerHandle, shutdown_signal};
use courser::webtransport::{self, Config, Session};

use self::world::{ENTRY, World};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
type Shared = State<(Arc<World>, ServerHandle)>;

const PAGE: &str = include_str!("webtransport_game/page.html");
const TICK: Duration = Duration::from_millis(50);

async fn join(State((world, _)): Shared, mut request: Request) -> Response {
    let upgrade = webtransport::upgrade(&mut request).protocols(["game.1"]);
    upgrade
        .accept(|session| async move { play(session, &world).await })
        .await
}

/// A player's first stream has the name, and is answered with the number.
async fn play(session: Session, world: &World) -> Result {
    let (mut send, mut receive) = session.accept_bi().await?;
    let name = String::from_utf8(receive.read_to_end(20).await?)?;
    let player = world.enter().ok_or("the field is full")?;
    send.write_all(&player.to_be_bytes()).await?;
    send.finish()?;
    let ended = rounds(&session, world, player, &name).await;
    world.leave(player);
    let _ = world.said.send(format!("{name} has left"));
    session.close(0, "goodbye").await;
    ended
}

/// Plays until the player leaves, the server restarts, or nothing arrives.
async fn rounds(session: &Session, world: &World, player: u16, name: &str) -> Result {
    let mut said = world.said.subscribe();
    world.said.send(format!("{name} has come"))?;
    let mut tick = tokio::time::interval(TICK);
    let now_or_never = DatagramOptions::new().max_age(TICK);
    loop {
        tokio::select! {
            place = session.datagrams().receive() => {
                if let Ok(place) = place.ok_or("lost")?.as_ref().try_into() { world.place(player, place) }
            }
            stream = session.accept_uni() => {
                let text = stream?.read_to_end(500).await?;
                world.said.send(format!("{name}: {}", String::from_utf8_lossy(&text)))?;
            }
            text = said.recv() => if let Ok(text) = text {
                let mut stream = session.open_uni().await?;
                stream.write_all(text.as_bytes()).await?;
                stream.finish()?;
            },
            _ = tick.tick() => {
                if !world.is_present(player) { return Err("silent".into()) }
                // Paths and clients differ in the size of the datagrams that they carry.
                let room = session.datagrams().max_size().unwrap_or(1000) / ENTRY * ENTRY;
                for part in world.state().chunks(room) {
                    session.datagrams().send_with(part, now_or_never)?;
                }
            }
            () = session.draining() => return Ok(()),
        }
    }
}

async fn hash(State((_, server)): Shared) -> String {
    format!("{:?}", server.certificates()[0].sha256)
}

#[tokio::main]
async fn main() -> Result {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:4433".into());
    let server = courser::serve(address.as_str(), Certificates::dev(["localhost"])?)
        .webtransport(Config::new())
        .drain(shutdown_signal())
        .bind()?;
    let app = Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/hash", get(hash))
        .route("/game", any(join))
        .with_state((Arc::new(World::new()), server.handle()));
    println!("https://{}/", server.local_addr());
    println!("{}", server.service(app).await?);
    Ok(())
}
