//! A simulated world with a victim and an attacker.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser::masque::{self, IpProxy, UdpProxy};
use courser::{EarlyDataOptions, Endpoint, ServerConfig, h3, runtime, webtransport};
use courser_adversary::{AttackNode, Attacker, Goals, Plan, attacks, client_tls, http as http3};
use courser_sim::World;
use courser_sim::identity::identity;
use http::{Request, Response};
use http_body_util::BodyExt as _;

use crate::counting;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The outcome of an attack.
#[derive(Debug)]
pub struct Outcome {
    /// The peak growth of the heap of the whole world, including the attacker.
    pub peak: usize,
    /// Connections that the server closed, by error code.
    pub closes: BTreeMap<String, u64>,
    /// Handshakes that the attacker completed.
    pub handshakes: u64,
    /// Datagrams that the attacker sent.
    pub sent: u64,
    /// Datagrams that the attacker received.
    pub received: u64,
    /// Bytes sent and received by the attacker.
    pub bytes: (u64, u64),
    /// Codes of streams that the victim reset or stopped, and statuses of responses.
    pub streams: BTreeMap<u64, u64>,
    pub statuses: BTreeMap<u16, u64>,
    /// Differences from the expected reaction.
    pub differences: Vec<String>,
}

impl Outcome {
    /// Checks an upper bound of memory in KiB.
    #[track_caller]
    pub fn assert_peak_below(&self, kib: usize) -> &Self {
        assert!(
            self.peak < kib * 1024,
            "heap grew by {} KiB, allowed are {kib}: {self:?}",
            self.peak / 1024
        );
        self
    }

    /// Checks that the attack took place: the attacker completed at least `handshakes` handshakes and sent at
    /// least `datagrams` datagrams. Without this, a bound also holds if nothing happened.
    #[track_caller]
    pub fn assert_ran(&self, handshakes: u64, datagrams: u64) -> &Self {
        assert!(
            self.handshakes >= handshakes && self.sent >= datagrams,
            "too few handshakes or datagrams: {self:?}"
        );
        self
    }

    /// Checks that the victim closed a connection with this error.
    #[track_caller]
    pub fn assert_closed_with(&self, code: &str) -> &Self {
        assert!(self.closes.contains_key(code), "no {code}: {self:?}");
        self
    }

    /// Checks that the victim reacted as the attack's entry in the list requires.
    #[track_caller]
    pub fn assert_expected(&self) -> &Self {
        assert!(self.differences.is_empty(), "{self:#?}");
        self
    }

    /// Checks that the victim closed no connection.
    #[track_caller]
    pub fn assert_tolerated(&self) -> &Self {
        assert!(self.closes.is_empty(), "{self:?}");
        assert!(self.handshakes > 0, "no connection: {self:?}");
        self
    }
}

/// Requests that a server with early data has processed.
#[derive(Clone, Debug, Default)]
pub struct Processed(Arc<[AtomicU64; 2]>);

impl Processed {
    /// Returns the number of early requests.
    pub fn early(&self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    /// Returns the number of other requests.
    pub fn late(&self) -> u64 {
        self.0[0].load(Ordering::Relaxed)
    }

    fn add(&self, request: &Request<h3::Body>) {
        let is_early = request.extensions().get::<h3::EarlyData>().is_some();
        self.0[usize::from(is_early)].fetch_add(1, Ordering::Relaxed);
    }
}

/// What an attacked server serves beside its files.
#[derive(Clone)]
pub enum Storey {
    /// An echo of WebTransport sessions.
    Sessions(webtransport::Config),
    /// A UDP proxy.
    Udp(UdpProxy),
    /// An IP proxy.
    Ip(IpProxy),
}

impl Storey {
    fn enable(&self, settings: &mut h3::Config) {
        let side = courser::Side::Server;
        match self {
            Self::Sessions(config) => {
                let monitor = webtransport::enable(settings, side, config.clone());
                drop(monitor.expect("no other extension exists"));
            }
            Self::Udp(_) | Self::Ip(_) => masque::enable(settings, side),
        }
    }

    async fn answer(self, mut request: Request<h3::Body>) -> Response<h3::Empty> {
        let is_closed = request.uri().query().is_some();
        match self {
            Self::Sessions(_) if request.method() != http::Method::CONNECT => {
                Response::new(h3::Empty::new())
            }
            Self::Sessions(_) => {
                webtransport::upgrade(&mut request)
                    .accept(move |session| echo(session, is_closed))
                    .await
            }
            Self::Udp(mut proxy) => tower::Service::call(&mut proxy, request)
                .await
                .unwrap_or_else(|error| match error {}),
            Self::Ip(mut proxy) => tower::Service::call(&mut proxy, request)
                .await
                .unwrap_or_else(|error| match error {}),
        }
    }
}

/// Echoes streams and datagrams, or ends the session at once with a long message.
async fn echo(session: webtransport::Session, is_closed: bool) {
    if is_closed {
        session.close(7, &"a".repeat(1000));
        session.closed().await;
        return;
    }
    let both = async {
        while let Ok((send, receive)) = session.accept_bi().await {
            runtime::spawn(copy(receive, send));
        }
    };
    let one = async {
        while let Ok(receive) = session.accept_uni().await {
            let session = session.clone();
            runtime::spawn(async move {
                if let Ok(send) = session.open_uni().await {
                    copy(receive, send).await;
                }
            });
        }
    };
    let datagrams = async {
        let mut batch = Vec::new();
        while session
            .datagrams()
            .receive_many(&mut batch, 64)
            .await
            .is_some()
        {
            // A full queue drops the oldest.
            let _ = session.datagrams().send_many(&mut batch);
            batch.clear();
        }
    };
    tokio::join!(both, one, datagrams);
}

async fn copy(mut receive: webtransport::RecvStream, mut send: webtransport::SendStream) {
    while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX).await {
        if send.write_all(&chunk).await.is_err() {
            return;
        }
    }
    // The session may have ended.
    let _ = send.finish();
}

/// Serves one storey above requests.
async fn serve_storey(storey: Storey) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let storey = storey.clone();
        runtime::spawn(async move {
            let mut settings = h3::Config::new(courser::Side::Server);
            storey.enable(&mut settings);
            let service = tower::service_fn(move |request| {
                let storey = storey.clone();
                async move { Ok::<_, Infallible>(storey.answer(request).await) }
            });
            h3::serve(incoming.await?, service).config(settings).await?;
            Result::Ok(())
        });
    }
    Ok(())
}

/// Runs an attack on a storey above requests.
pub fn attack_on_storey(name: &str, time: Duration, storey: Storey) -> Outcome {
    attack_at("10.0.0.2:443", name, time, |world| {
        let far = world.machine("server", [10, 0, 0, 2]);
        let hosts = world.machine("hosts", [10, 0, 0, 3]);
        world.join_machines(&far, &hosts, &LINK.parse().expect("the link is valid"));
        far.spawn(serve_storey(storey));
        world.id_of(&far)
    })
}

/// The settings of an attacked server.
#[derive(Default)]
struct Victim {
    /// The memory budget in bytes.
    budget: Option<u64>,
    /// Accepts early data and counts its requests.
    processed: Option<Processed>,
    /// Claims streams and frames of an extension, and accepts none of them.
    has_extension: bool,
}

/// Returns the settings of HTTP/3 of a server with an extension.
fn config_with_extension() -> h3::Config {
    let longest = usize::try_from(http3::LONGEST_CLAIMED).expect("the limit fits in memory");
    let mut config = h3::Config::new(courser::Side::Server);
    config.extensions = h3::Extensions::new()
        .unidirectional_stream(http3::CLAIMED_UNIDIRECTIONAL)
        .and_then(|it| it.bidirectional_stream(http3::CLAIMED_BIDIRECTIONAL))
        .and_then(|it| {
            let control = h3::FrameStream::Control;
            it.frame(http3::CLAIMED_ON_CONTROL, control, longest)
        })
        .and_then(|it| {
            let request = h3::FrameStream::Request;
            it.frame(http3::CLAIMED_ON_REQUESTS, request, longest)
        })
        .expect("the numbers are not in use");
    config
}

/// Runs an application that serves a large body at `/large` and reads uploads.
async fn serve(victim: Victim) -> Result {
    let Victim {
        budget,
        processed,
        has_extension,
    } = victim;
    let mut config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    if let Some(bytes) = budget {
        config = config.memory_budget(bytes);
    }
    let is_early = processed.is_some();
    if is_early {
        config = config.early_data(EarlyDataOptions::default());
    }
    let processed = processed.unwrap_or_default();
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let processed = processed.clone();
        runtime::spawn(async move {
            let connection = match is_early {
                true => incoming.accept()?.early().await?,
                false => incoming.await?,
            };
            let service = tower::service_fn(move |request: Request<h3::Body>| {
                processed.add(&request);
                async move {
                    let is_large = request.uri().path() == attacks::LARGE;
                    request.into_body().collect().await?;
                    let left = if is_large { LARGE } else { 4 };
                    Ok::<_, h3::Error>(Response::new(Content { left }))
                }
            });
            let config = match has_extension {
                true => config_with_extension(),
                false => h3::Config::new(courser::Side::Server),
            };
            h3::serve(connection, service).config(config).await?;
            Result::Ok(())
        });
    }
    Ok(())
}

/// A body that is generated while it is sent, like one that is read from a file.
pub struct Content {
    left: usize,
}

impl Content {
    /// Returns the body of the large response.
    pub fn large() -> Self {
        Self { left: LARGE }
    }
}

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<http_body::Frame<Bytes>, Infallible>>> {
        let len = self.left.min(CHUNK);
        self.left -= len;
        let frame = http_body::Frame::data(Bytes::from(vec![0; len]));
        Poll::Ready((len > 0).then_some(Ok(frame)))
    }
}

/// The size of the large response in bytes.
const LARGE: usize = 4 << 20;

/// The size of each chunk of a response in bytes.
const CHUNK: usize = 64 * 1024;

/// Runs an attack for `time` with one turn per millisecond.
pub fn attack(name: &str, time: Duration) -> Outcome {
    attack_server(name, time, Victim::default())
}

/// Runs an attack against a server with an extension of HTTP/3, whose application accepts nothing of it.
pub fn attack_on_extension(name: &str, time: Duration) -> Outcome {
    let victim = Victim {
        has_extension: true,
        ..Victim::default()
    };
    attack_server(name, time, victim)
}

/// Runs an attack against a server that accepts early data. Returns the requests that it processed too.
pub fn attack_on_early_data(name: &str, time: Duration) -> (Outcome, Processed) {
    let processed = Processed::default();
    let victim = Victim {
        processed: Some(processed.clone()),
        ..Victim::default()
    };
    let outcome = attack_server(name, time, victim);
    (outcome, processed)
}

/// Runs an attack against a server with a memory budget in bytes.
pub fn attack_within(budget: u64, name: &str, time: Duration) -> Outcome {
    let victim = Victim {
        budget: Some(budget),
        ..Victim::default()
    };
    attack_server(name, time, victim)
}

fn attack_server(name: &str, time: Duration, victim: Victim) -> Outcome {
    attack_at("10.0.0.2:443", name, time, |world| {
        let far = world.machine("server", [10, 0, 0, 2]);
        far.spawn(serve(victim));
        world.id_of(&far)
    })
}

/// Runs an attack against the machine that `add` adds to the world.
pub fn attack_at(
    target: &str,
    name: &str,
    time: Duration,
    add: impl FnOnce(&mut World) -> courser_sim::world::NodeId,
) -> Outcome {
    let plan = attacks::find(name).expect("the attack exists");
    let mut world = World::new(7);
    let victim = add(&mut world);
    let mut attacker = Attacker::new(
        target.parse().expect("the address is valid"),
        client_tls(b"h3"),
        [7; 32],
    );
    attacker.set_goals(Goals {
        echo: "10.0.0.3:7".parse().expect("the address is valid"),
        silent: "10.0.0.3:9".parse().expect("the address is valid"),
    });
    let address = "10.0.0.9:20000".parse().expect("the address is valid");
    let node = AttackNode::new(address, attacker, (plan.make)(), TURN);
    let node = world.add("attacker", address.ip(), node);
    world.connect(node, victim, &LINK.parse().expect("the link is valid"));
    measure(&mut world, node, time, plan)
}

fn measure(
    world: &mut World,
    node: courser_sim::world::NodeId,
    time: Duration,
    plan: &Plan,
) -> Outcome {
    let before = counting::live();
    let mut peak = before;
    let end = world.now() + time;
    while world.now() < end {
        world.run_for(STEP).expect("time advances");
        peak = peak.max(counting::live());
    }
    let node: &AttackNode = world.node(node).expect("the node is the attacker");
    let counts = node.attacker().counts();
    Outcome {
        peak: usize::try_from(peak - before).unwrap_or(0),
        closes: counts.closes.clone(),
        handshakes: counts.handshakes,
        sent: counts.sent,
        received: counts.received,
        bytes: (counts.sent_bytes, counts.received_bytes),
        streams: node.attacker().stream_codes(),
        statuses: node.attacker().statuses(),
        differences: plan.expect.differences(node.attacker()),
    }
}

/// The interval between two turns of an attack at full speed.
const TURN: Duration = Duration::from_millis(1);

/// The interval at which the heap is sampled.
const STEP: Duration = Duration::from_millis(10);

const LINK: &str = "2ms";
