//! A relay with a publisher and fifty subscribers, whose connections carry half of what is published.
//!
//! `moq-witness [quic|session]...` runs on connections of QUIC, on sessions of WebTransport, or on both. It prints a line for
//! each, and ends with 1 if the newest group did not arrive whole everywhere or groups began to arrive late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use courser::webtransport::{self, Config, Protocols, Session, SessionRequest, Transport};
use courser::{ClientConfig, Endpoint, Identity, Rate, ServerConfig, Side, TransportConfig, h3};
use moq_net::track::{Info, Subscription};
use moq_net::{Client, Hop, Server, Timestamp, Version, origin};
use moq_witness::Link;

const SUBSCRIBERS: usize = 50;
const GROUPS: u64 = 60;
const FRAMES: usize = 10;
const FRAME: usize = 2000;
/// A group each time: 200 kB/s.
const INTERVAL: Duration = Duration::from_millis(100);
/// What the relay may send to a subscriber: half of it.
const RATE: u64 = 100_000;
/// The age at which a group is given up.
const MAX_AGE: Duration = Duration::from_millis(400);
const VERSION: &str = "moq-lite-05";

#[tokio::main]
async fn main() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for carrier in ["quic", "session"] {
        if !names.is_empty() && !names.iter().any(|name| name == carrier) {
            continue;
        }
        let outcome = tokio::time::timeout(Duration::from_secs(60), run(carrier)).await??;
        println!("{carrier}: {outcome}");
        outcome.check()?;
    }
    Ok(())
}

async fn run(carrier: &str) -> Result<Outcome> {
    let relay = Relay::begin(carrier)?;
    let origin = produce_origin(2);
    let broadcast = origin.create_broadcast("live")?;
    let info = Info::default().with_max_age(MAX_AGE);
    let track = broadcast.create_track("video", info)?;
    broadcast.announce(Default::default())?;
    let publisher = Client::new().with_publisher(&origin);
    let _publisher = relay.join(publisher).await?;

    let counters = Arc::new(Counters::default());
    let mut subscribers = Vec::new();
    for number in 0..SUBSCRIBERS {
        let origin = produce_origin(10 + number as u64);
        let session = relay
            .join(Client::new().with_subscriber(origin.clone()))
            .await?;
        let consumer = origin.consume();
        consumer.routed("live").await.context("not announced")?;
        let remote = consumer.request_broadcast("live").await?;
        let mut subscription = Subscription::default();
        subscription.max_age = MAX_AGE;
        let subscriber = remote.track("video")?.subscribe(subscription).await?;
        tokio::spawn(watch(subscriber, counters.clone()));
        subscribers.push((session, origin));
    }

    let mut ticks = tokio::time::interval(INTERVAL);
    for _ in 0..GROUPS {
        ticks.tick().await;
        let mut group = track.append_group()?;
        for _ in 0..FRAMES {
            group.write_frame(Timestamp::now(), vec![7; FRAME])?;
        }
        group.finish()?;
        counters.published.fetch_add(1, Ordering::Relaxed);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Outcome {
        newest: load(&counters.newest),
        whole: load(&counters.whole),
        begun: load(&counters.begun),
        behind: load(&counters.behind) as f64 / load(&counters.begun).max(1) as f64,
        resets: relay.resets(),
    })
}

#[derive(Default)]
struct Counters {
    published: AtomicU64,
    /// Subscribers that have the last group.
    newest: AtomicU64,
    whole: AtomicU64,
    /// Groups of which the first frame has arrived.
    begun: AtomicU64,
    /// Groups that were newer than one when its first frame arrived, over all.
    behind: AtomicU64,
}

/// Reads groups, each in a task of its own.
async fn watch(mut subscriber: moq_net::track::Subscriber, counters: Arc<Counters>) {
    while let Ok(Some(mut group)) = subscriber.recv_group().await {
        let counters = counters.clone();
        tokio::spawn(async move {
            let mut frames = 0;
            while let Ok(Some(_)) = group.read_frame().await {
                frames += 1;
                if frames == 1 {
                    let latest = counters.published.load(Ordering::Relaxed);
                    let behind = latest.saturating_sub(group.sequence + 1);
                    counters.begun.fetch_add(1, Ordering::Relaxed);
                    counters.behind.fetch_add(behind, Ordering::Relaxed);
                }
            }
            if frames == FRAMES {
                counters.whole.fetch_add(1, Ordering::Relaxed);
                if group.sequence + 1 == GROUPS {
                    counters.newest.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
}

struct Outcome {
    newest: u64,
    whole: u64,
    begun: u64,
    behind: f64,
    resets: u64,
}

impl Outcome {
    fn check(&self) -> Result<()> {
        let all = SUBSCRIBERS as u64;
        ensure!(
            self.newest == all,
            "{} of {all} have the newest group",
            self.newest
        );
        ensure!(
            self.begun > all * GROUPS * 3 / 4,
            "{} groups have begun",
            self.begun
        );
        ensure!(
            self.behind < 2.0,
            "groups begin {} behind the newest",
            self.behind
        );
        Ok(())
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            newest,
            whole,
            begun,
            behind,
            resets,
        } = self;
        let published = SUBSCRIBERS as u64 * GROUPS;
        write!(
            f,
            "the newest group whole at {newest} of {SUBSCRIBERS} subscribers; of {published} groups {begun} have begun to arrive, \
             {behind:.2} behind the newest on average, and {whole} are whole; {resets} streams reset by the relay"
        )
    }
}

/// A relay on a socket, and the way to it.
struct Relay {
    carrier: String,
    identity: Identity,
    server: Endpoint,
    client: Endpoint,
    connections: Arc<std::sync::Mutex<Vec<courser::Connection>>>,
}

impl Relay {
    fn begin(carrier: &str) -> Result<Self> {
        let identity = Identity::dev()?;
        let transport = TransportConfig {
            max_send_rate: Some(Rate::from_bytes_per_second(RATE)),
            ..TransportConfig::default()
        };
        let config = ServerConfig::with_identity(&identity)?.transport_config(Arc::new(transport));
        let alpn = alpn(carrier)?;
        let server = Endpoint::server(config.alpn([alpn]), "127.0.0.1:0".parse()?)?;
        let client = Endpoint::client("127.0.0.1:0".parse()?)?;
        let origin = produce_origin(1);
        let connections = Arc::<std::sync::Mutex<Vec<courser::Connection>>>::default();
        let relay = Self {
            carrier: carrier.to_owned(),
            identity,
            server: server.clone(),
            client,
            connections: connections.clone(),
        };
        let is_quic = carrier == "quic";
        tokio::spawn(async move {
            while let Some(incoming) = server.accept().await {
                let (origin, connections) = (origin.clone(), connections.clone());
                tokio::spawn(async move {
                    let connection = incoming.await?;
                    connections
                        .lock()
                        .expect("no panic")
                        .push(connection.clone());
                    match is_quic {
                        true => serve(connection, origin).await,
                        false => serve_sessions(connection, origin).await,
                    }
                });
            }
        });
        Ok(relay)
    }

    /// Connects a client to the relay.
    async fn join(&self, client: Client) -> Result<moq_net::Session> {
        let config = ClientConfig::with_roots([self.identity.certificate()])?;
        let config = config.alpn([alpn(&self.carrier)?]);
        let address = self.server.local_addr()?;
        let connection = self
            .client
            .connect_with(config, address, "localhost")?
            .await?;
        let client = client.with_versions(version()?.into());
        if self.carrier == "quic" {
            return begin(client, connection).await;
        }
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, Config::new())?;
        let http = h3::Client::with_config(connection, settings);
        let request = SessionRequest::new("https://localhost/live".parse()?);
        let request = request.protocols(Protocols::new([version()?.alpn()])?);
        begin(client, webtransport::connect(&http, request).await?).await
    }

    /// Returns the number of streams that the relay has reset.
    fn resets(&self) -> u64 {
        let connections = self.connections.lock().expect("no panic");
        let frames = connections.iter().map(|connection| {
            let sent = connection.stats().frames_sent;
            sent.reset_stream + sent.reset_stream_at
        });
        frames.sum()
    }
}

fn version() -> Result<Version> {
    VERSION
        .parse()
        .map_err(|_| anyhow::anyhow!("no version {VERSION}"))
}

fn alpn(carrier: &str) -> Result<Vec<u8>> {
    Ok(match carrier {
        "quic" => version()?.alpn().as_bytes().to_vec(),
        _ => h3::ALPN.as_bytes().to_vec(),
    })
}

fn now() -> moq_net::time::Instant {
    tokio::time::Instant::now().into_std()
}

async fn begin<T: Transport>(client: Client, transport: T) -> Result<moq_net::Session> {
    let (session, driver) = client.connect(now(), Link::new(transport)).await?;
    tokio::spawn(moq_net::time::run(driver));
    Ok(session)
}

/// Serves one client of the relay, on any transport.
async fn serve<T: Transport>(transport: T, origin: origin::Producer) -> Result<()> {
    let server = Server::new()
        .with_versions(version()?.into())
        .with_origin(origin);
    let (session, driver) = server.accept(now(), Link::new(transport)).await?;
    let _session = session;
    moq_net::time::run(driver).await;
    Ok(())
}

async fn serve_sessions(connection: courser::Connection, origin: origin::Producer) -> Result<()> {
    let app = Router::new().route(
        "/live",
        any(move |mut request: Request| {
            let origin = origin.clone();
            async move {
                let name = version().map(|version| version.alpn().to_owned());
                let upgrade = webtransport::upgrade(&mut request).protocols(name);
                let accepted = upgrade.accept(|session: Session| serve(session, origin));
                let response: axum::response::Response = accepted.await;
                response
            }
        }),
    );
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, Config::new())?;
    h3::serve(connection, app.into_service::<h3::Body>())
        .config(settings)
        .await?;
    Ok(())
}

fn produce_origin(hop: u64) -> origin::Producer {
    let hop = Hop::new(hop).expect("a small number");
    let (producer, driver) = origin::Producer::new(origin::Config::new(hop));
    tokio::spawn(moq_net::time::run(driver));
    producer
}
