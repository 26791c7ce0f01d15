//! Connections inside of tunnels of a UDP proxy: `masque-nested` and `masque-mtu`.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use courser::masque::{self, Policy, Template, UdpClient, UdpProxy};
use courser::{
    Algorithm, ClientConfig, Connection, Endpoint, ServerConfig, Side, TransportConfig, h3, runtime,
};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The target: reads streams to their end, and echoes those of a single packet.
async fn target(algorithm: Algorithm) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn(["nested"]);
    let config = config.transport_config(controlled(algorithm));
    let endpoint = Endpoint::server(config, "10.0.0.3:443".parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        runtime::spawn(async move {
            let connection = incoming.await?;
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                runtime::spawn(async move {
                    let (mut first, mut len) = (None, 0_u64);
                    while let Some(chunk) = receive.read_chunk(usize::MAX).await? {
                        len += chunk.len() as u64;
                        first.get_or_insert(chunk);
                    }
                    let wanted = first.filter(|it| it.len() == 8).map(|it| {
                        let bytes: [u8; 8] = it[..].try_into().expect("eight bytes");
                        u64::from_be_bytes(bytes)
                    });
                    match wanted {
                        // A download of this length.
                        Some(wanted) => {
                            for _ in 0..wanted / CHUNK {
                                let chunk = Bytes::from(vec![7; usize::try_from(CHUNK)?]);
                                send.write_chunk(chunk).await?;
                            }
                        }
                        None => send.write_all(&len.to_be_bytes()).await?,
                    }
                    send.finish()?;
                    Result::Ok(())
                });
            }
            Result::Ok(())
        });
    }
    Ok(())
}

const CHUNK: u64 = 16 * 1024;

async fn proxy(algorithm: Algorithm) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let config = config.transport_config(masque::transport_config(controlled(algorithm)));
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let policy = Policy::nothing().allow("10.0.0.3/32".parse()?, 443..=443);
    let proxy = UdpProxy::new(policy).open_to_all();
    while let Some(incoming) = endpoint.accept().await {
        let mut settings = h3::Config::new(Side::Server);
        masque::enable(&mut settings, Side::Server);
        let proxy = proxy.clone();
        let service = tower::service_fn(move |request| {
            let mut proxy = proxy.clone();
            async move {
                let answer = tower::Service::call(&mut proxy, request);
                Ok::<_, Infallible>(answer.await.unwrap_or_else(|error| match error {}))
            }
        });
        runtime::spawn(async move {
            let serving = h3::serve(incoming.await?, service).config(settings);
            serving.await?;
            Result::Ok(())
        });
    }
    Ok(())
}

fn controlled(algorithm: Algorithm) -> TransportConfig {
    TransportConfig {
        congestion: algorithm,
        ..TransportConfig::default()
    }
}

fn client(algorithm: Algorithm, protocol: &[u8]) -> Result<ClientConfig> {
    let config = ClientConfig::with_roots([identity().certificate()])?.alpn([protocol]);
    Ok(config.transport_config(controlled(algorithm)))
}

/// Connects to the target, without a proxy.
async fn plain(inner: Algorithm) -> Result<Path> {
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let config = client(inner, b"nested")?;
    let connecting = endpoint.connect_with(config, "10.0.0.3:443".parse()?, "localhost")?;
    Ok(Path {
        inner: connecting.await?,
        outer: None,
    })
}

/// Connects to the target through the proxy.
async fn nested(inner: Algorithm, outer: Algorithm) -> Result<Path> {
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let config = client(outer, b"h3")?;
    let config = config.transport_config(masque::transport_config(controlled(outer)));
    let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
    let outer = connecting.await?;
    let mut settings = h3::Config::new(Side::Client);
    masque::enable(&mut settings, Side::Client);
    let client3 = h3::Client::with_config(outer.clone(), settings);
    let proxy = UdpClient::over(client3, Template::of_proxy("localhost")?);
    let socket = proxy.open("10.0.0.3:443").await?;
    let transport = socket.clone().into_transport();
    let peer = transport.peer_addr();
    let endpoint = Endpoint::builder().transport(transport)?;
    let connecting = endpoint.connect_with(client(inner, b"nested")?, peer, "localhost")?;
    Ok(Path {
        inner: connecting.await?,
        outer: Some((outer, socket)),
    })
}

/// A connection to the target, and what carries it.
struct Path {
    inner: Connection,
    outer: Option<(Connection, masque::Socket)>,
}

/// What a transfer has measured.
#[derive(Clone, Debug)]
struct Measured {
    /// Megabits per second.
    goodput: f64,
    /// The times of single requests beside the transfer, ascending, and of some before it.
    busy: Vec<Duration>,
    idle: Vec<Duration>,
}

impl Measured {
    fn p99(times: &[Duration]) -> Duration {
        times[times.len() * 99 / 100]
    }
}

/// Transfers bytes in one direction, with a request each 20 ms on the same connection.
async fn transfer(path: Path, is_up: bool) -> Result<Measured> {
    let connection = &path.inner;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(request(connection).await?);
        runtime::sleep(20 * MS).await;
    }
    let begun = runtime::now();
    let bulk = async {
        let (mut send, mut receive) = connection.open_bi().await?;
        let received = match is_up {
            true => {
                for _ in 0..BYTES / CHUNK {
                    let chunk = Bytes::from(vec![7; usize::try_from(CHUNK)?]);
                    send.write_chunk(chunk).await?;
                }
                send.finish()?;
                let answer = receive.read_to_end(8).await?;
                u64::from_be_bytes(answer[..].try_into()?)
            }
            false => {
                send.write_all(&BYTES.to_be_bytes()).await?;
                send.finish()?;
                let mut len = 0;
                while let Some(chunk) = receive.read_chunk(usize::MAX).await? {
                    len += chunk.len() as u64;
                }
                len
            }
        };
        assert_eq!(received, BYTES / CHUNK * CHUNK);
        Result::Ok((BYTES * 8) as f64 / 1e6 / (runtime::now() - begun).as_secs_f64())
    };
    let mut busy = Vec::new();
    let pings = async {
        loop {
            match request(connection).await {
                Ok(time) => busy.push(time),
                Err(error) => return error,
            }
            runtime::sleep(20 * MS).await;
        }
    };
    let goodput = tokio::select! {
        goodput = bulk => goodput?,
        failed = pings => return Err(failed),
    };
    busy.sort();
    idle.sort();
    Ok(Measured {
        goodput,
        busy,
        idle,
    })
}

/// Five seconds of the link.
const BYTES: u64 = 12_500_000;

async fn request(connection: &Connection) -> Result<Duration> {
    let begun = runtime::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"ping").await?;
    send.finish()?;
    let answer = receive.read_to_end(8).await?;
    assert_eq!(answer, 4_u64.to_be_bytes());
    Ok(runtime::now() - begun)
}

/// Runs a client in a world with a path of 20 ms, most of it in front of the proxy.
fn run<T: Send + 'static, F>(
    seed: u64,
    link: &str,
    inner: Algorithm,
    outer: Algorithm,
    client: F,
) -> T
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let middle = world.machine("proxy", [10, 0, 0, 2]);
    let far = world.machine("target", [10, 0, 0, 3]);
    let first = world.join_machines(&near, &middle, &link.parse().expect("a link"));
    let second = world.join_machines(&middle, &far, &"1gbit,rtt=2ms".parse().expect("a link"));
    // Packets to the target pass the same links without the proxy.
    let (near_id, far_id) = (world.id_of(&near), world.id_of(&far));
    world.route(near_id, far_id, &[first.forward, second.forward]);
    world.route(far_id, near_id, &[second.back, first.back]);
    middle.spawn(proxy(outer));
    far.spawn(target(inner));
    let done = near.spawn(client);
    let done = world.run_until_done(done).expect("it ends");
    done.expect("the client succeeds")
}

/// With datagrams of 64 kB, as on a link without a limit, a queue of 45 kB would hold none.
const LINK: &str = "20mbit,rtt=18ms,queue=1bdp,mtu=1500";

/// QUIC in QUIC with a controller each: goodput of at least 0.85 of the connection without a proxy, at most 10 ms more for
/// the slowest per cent of requests on an idle path, and 80 ms beside the transfer.
#[test]
fn nested_controllers_keep_goodput_and_delay() {
    let pairs = [
        (Algorithm::Cubic, Algorithm::Cubic),
        (Algorithm::Cubic, Algorithm::Bbr),
        (Algorithm::Bbr, Algorithm::Cubic),
    ];
    for (inner, outer) in pairs {
        for is_up in [true, false] {
            for_each_seed(2, |seed| {
                let alone = run(seed, LINK, inner, outer, async move {
                    transfer(plain(inner).await?, is_up).await
                });
                let through = run(seed, LINK, inner, outer, async move {
                    transfer(nested(inner, outer).await?, is_up).await
                });
                let what = format!("{inner:?} in {outer:?}, up {is_up}");
                let share = through.goodput / alone.goodput;
                let [busy, idle] = [[&alone.busy, &through.busy], [&alone.idle, &through.idle]]
                    .map(|both| both.map(|times| Measured::p99(times)));
                eprintln!(
                    "{what}: {:.2} of {:.2} Mbit/s, {share:.3}; busy {busy:?}, idle {idle:?}",
                    through.goodput, alone.goodput
                );
                assert!(share >= 0.85, "{what}: {share}");
                assert!(idle[1] <= idle[0] + 10 * MS, "{what}: {idle:?}");
                // The inner connection may fill the queue of the outer one as well as that of the link, and some runs do.
                let most = 80 * MS;
                assert!(busy[1] <= busy[0] + most, "{what}: {busy:?}");
            });
        }
    }
}

/// The datagram sizes of the inner connection, and what the tunnel carries, each 10 ms.
async fn sizes(time: Duration) -> Result<Vec<(Duration, usize, usize)>> {
    let path = nested(Algorithm::Cubic, Algorithm::Cubic).await?;
    let (_outer, socket) = path.outer.clone().expect("a tunnel");
    let connection = path.inner.clone();
    let begun = runtime::now();
    runtime::spawn(async move {
        let (mut send, _receive) = connection.open_bi().await?;
        loop {
            let chunk = Bytes::from(vec![7; 16_384]);
            if let Err(error) = send.write_chunk(chunk).await {
                return Result::<()>::Err(error.into());
            }
        }
    });
    let mut seen = Vec::new();
    while runtime::now() - begun < time {
        runtime::sleep(10 * MS).await;
        let inner = usize::from(path.inner.stats().path.mtu);
        seen.push((runtime::now() - begun, inner, socket.max_size()));
    }
    Ok(seen)
}

/// Two round trips, and a sample.
const TWO: Duration = Duration::from_millis(50);

/// The path becomes narrow in steps: as soon as the outer connection has noticed, the inner one follows within two round
/// trips. Fault F174.
#[test]
fn inner_size_follows_a_path_that_shrinks() {
    for_each_seed(3, |seed| {
        let link = "20mbit,rtt=18ms,queue=1bdp,mtu=1500,mtu@2s=1400,mtu@5s=1280";
        let seen = run(
            seed,
            link,
            Algorithm::Cubic,
            Algorithm::Cubic,
            sizes(9 * SECOND),
        );
        let mut last = (0, 0);
        for (at, inner, outer) in &seen {
            if (*inner, *outer) != last {
                eprintln!("{at:?}: {inner} of {outer}");
            }
            last = (*inner, *outer);
        }
        assert_follows(&seen);
        let (_, inner, outer) = seen[seen.len() - 1];
        assert!(outer < 1260 && inner == outer, "{inner} of {outer}");
    });
}

/// The outer connection finds the size of the path while the inner one starts.
#[test]
fn inner_size_follows_the_search_of_the_outer_one() {
    for mtu in [1280, 1350, 1400, 1450, 1500] {
        for_each_seed(2, |seed| {
            let link = format!("20mbit,rtt=18ms,queue=1bdp,mtu={mtu}");
            let seen = run(
                seed,
                &link,
                Algorithm::Cubic,
                Algorithm::Cubic,
                sizes(2 * SECOND),
            );
            assert_follows(&seen);
            let (_, inner, outer) = seen[seen.len() - 1];
            eprintln!("{mtu}: {inner} of {outer}");
        });
    }
}

/// Checks that the inner size is that of the tunnel, except for two round trips after a change: of the tunnel, or of the inner
/// connection, which may see the losses first. While the outer connection has fallen back to its smallest packets, it carries
/// no QUIC; then the inner one may wait for its probe timer.
fn assert_follows(seen: &[(Duration, usize, usize)]) {
    let mut since = seen[0];
    let mut patience = TWO;
    for &(at, inner, outer) in seen {
        if (inner, outer) != (since.1, since.2) {
            since = (at, inner, outer);
        }
        if outer < 1200 {
            patience = SECOND / 2;
        } else if inner <= outer && inner + 8 >= outer {
            patience = TWO;
        } else {
            assert!(
                at <= since.0 + patience,
                "{inner} of {outer} since {:?}",
                since.0
            );
        }
    }
}
