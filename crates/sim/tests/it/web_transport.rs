//! Sessions of WebTransport over links that lose, reorder and change, in virtual time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use courser::webtransport::{self, Config, RecvStream, SendStream, Session, SessionRequest};
use courser::{ClientConfig, Connection, Endpoint, ServerConfig, Side, h3, runtime};
use courser_sim::World;
use courser_sim::identity::identity;
use courser_sim::replay::for_each_seed;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Serves one connection: sessions with `serve`, and 4000 bytes for all other requests. Drains at the time.
async fn server<F>(serve: fn(Session) -> F, drain_after: Duration) -> Result
where
    F: Future<Output = ()> + Send + 'static,
{
    let config = ServerConfig::with_identity(&identity())?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, "10.0.0.2:443".parse()?)?;
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, Config::new())?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let service = tower::service_fn(move |mut request: Request<h3::Body>| async move {
        Ok::<_, Infallible>(match request.uri().path() {
            "/session" => webtransport::upgrade(&mut request).accept(serve).await,
            _ => Response::new(Full::new(Bytes::from(vec![b'x'; 4000]))),
        })
    });
    let drain = runtime::sleep(drain_after);
    let serving = h3::serve(connection, service).config(settings).drain(drain);
    serving.await?;
    endpoint.wait_idle().await;
    Ok(())
}

/// The client, with its connection.
struct Client {
    http3: h3::Client,
    quic: Connection,
}

impl Client {
    async fn connect() -> Result<Self> {
        let config = ClientConfig::with_roots([identity().certificate()])?.alpn([h3::ALPN]);
        let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
        let connecting = endpoint.connect_with(config, "10.0.0.2:443".parse()?, "localhost")?;
        let quic = connecting.await?;
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, Config::new())?;
        let http3 = h3::Client::with_config(quic.clone(), settings);
        Ok(Self { http3, quic })
    }

    async fn open(&self) -> Result<Session> {
        let wish = SessionRequest::new("https://localhost/session".parse()?);
        Ok(webtransport::connect(&self.http3, wish).await?)
    }
}

/// Runs both ends on a link until the client is done.
fn run<T: Send + 'static, S, C>(
    seed: u64,
    link: &str,
    server: S,
    client: impl FnOnce() -> C,
) -> std::result::Result<T, String>
where
    S: Future<Output = Result> + Send + 'static,
    C: Future<Output = Result<T>> + Send + 'static,
{
    let mut world = World::new(seed);
    let near = world.machine("client", [10, 0, 0, 1]);
    let far = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&near, &far, &link.parse().expect("a link"));
    far.spawn(server);
    let done = near.spawn(client());
    let done = world.run_until_done(done).map_err(|it| it.to_string())?;
    done.map_err(|error| error.to_string())
}

/// Answers each bidirectional stream with its content, and each datagram with itself.
async fn echo(session: Session) {
    let streams = async {
        while let Ok((send, receive)) = session.accept_bi().await {
            runtime::spawn(copy(receive, send));
        }
    };
    let datagrams = async {
        let datagrams = session.datagrams();
        let mut batch = Vec::new();
        while datagrams.receive_many(&mut batch, 64).await.is_some() {
            if datagrams.send_many(&mut batch).is_err() {
                return;
            }
        }
    };
    tokio::join!(streams, datagrams);
}

async fn copy(mut receive: RecvStream, mut send: SendStream) {
    while let Ok(Some(chunk)) = receive.read_chunk(usize::MAX).await {
        if send.write_all(&chunk).await.is_err() {
            return;
        }
    }
    // The session may have ended.
    let _ = send.finish();
}

/// Sends content on a stream of its own, and compares the answer.
async fn exchange(session: Session, number: usize) -> Result {
    let content: Vec<u8> = (0..CONTENT).map(|at| (at * 31 + number) as u8).collect();
    let (mut send, mut receive) = session.open_bi().await?;
    let answer = async {
        let answer = receive.read_to_end(CONTENT).await?;
        assert!(answer == content, "stream {number} differs");
        Result::Ok(())
    };
    let question = async {
        send.write_all(&content).await?;
        send.finish()?;
        Result::Ok(())
    };
    tokio::try_join!(question, answer)?;
    Ok(())
}

/// The bytes of a stream.
const CONTENT: usize = 64 * 1024;

/// What a mixed load has seen.
#[derive(Debug)]
struct Mixed {
    /// The datagrams that came back, of 1500.
    datagrams: usize,
    /// The times of the requests, ascending.
    requests: Vec<Duration>,
    /// The time of all streams.
    streams: Duration,
}

/// 32 streams of 64 KiB each way, 500 datagrams a second and a request every 100 ms, on one connection.
async fn mixed() -> Result<Mixed> {
    let client = Client::connect().await?;
    let session = client.open().await?;
    let begun = runtime::now();
    let exchanges: Vec<_> = (0..32)
        .map(|number| runtime::spawn(exchange(session.clone(), number)))
        .collect();
    let streams = async {
        for exchange in exchanges {
            exchange.await??;
        }
        Result::Ok(runtime::now() - begun)
    };
    let sending = async {
        let mut ticks = runtime::interval(2 * MS);
        for number in 0..1500_u32 {
            ticks.tick().await;
            session.datagrams().send(&number.to_be_bytes())?;
        }
        runtime::sleep(SECOND).await;
        Result::Ok(())
    };
    let mut returned = BTreeSet::new();
    let receiving = async {
        while let Some(datagram) = session.datagrams().receive().await {
            assert!(returned.insert(datagram), "a datagram came twice");
        }
    };
    let datagrams = async {
        tokio::select! {
            sent = sending => sent,
            () = receiving => Err("the session has ended".into()),
        }
    };
    let requests = async {
        let mut times = Vec::new();
        for _ in 0..30 {
            let begun = runtime::now();
            let request = Request::get("https://localhost/").body(h3::Empty::new())?;
            let response = client.http3.send(request).await?;
            let content = response.into_body().collect().await?.to_bytes();
            assert_eq!(content.len(), 4000);
            times.push(runtime::now() - begun);
            runtime::sleep(100 * MS).await;
        }
        times.sort();
        Result::Ok(times)
    };
    let (streams, (), requests) = tokio::try_join!(streams, datagrams, requests)?;
    Ok(Mixed {
        datagrams: returned.len(),
        requests,
        streams,
    })
}

/// Two megabytes each way take 0.9 s of the link.
#[test]
fn streams_datagrams_and_requests_share_a_connection_with_loss() {
    for_each_seed(10, |seed| {
        let server = server(echo, SECOND * 1000);
        let seen = run(seed, "20mbit,20ms,1%,queue=1bdp", server, mixed);
        let seen = seen.expect("all streams and requests are answered");
        // 2 % are lost by the link, and some by its queue while the streams probe for its rate.
        assert!(seen.datagrams >= 1350, "{seen:?}");
        assert!(seen.streams < 8 * SECOND, "{seen:?}");
        // One loss costs a round trip and a half.
        assert!(seen.requests[15] < 200 * MS, "{seen:?}");
        assert!(seen.requests[29] < 500 * MS, "{seen:?}");
    });
}

/// Streams of each kind that an early end opens.
const EARLY: u8 = 8;

/// Opens streams and sends datagrams before the client knows of the session.
async fn hurry(session: Session) {
    for number in 0..EARLY {
        let Ok(mut send) = session.open_uni().await else {
            return;
        };
        let Ok((mut both, _)) = session.open_bi().await else {
            return;
        };
        for stream in [&mut send, &mut both] {
            let written = stream.write_all(&[number]).await;
            written
                .and_then(|()| stream.finish())
                .expect("the session is open");
        }
        let sent = session.datagrams().send(&[number]);
        sent.expect("the session is open");
    }
    // The client's own have arrived too.
    let verdict = match gather(&session).await {
        Ok(arrived) => format!("{arrived:?}"),
        Err(error) => error.to_string(),
    };
    let asked = session.accept_bi().await;
    let (mut send, _) = asked.expect("the session is open");
    let written = send.write_all(verdict.as_bytes()).await;
    written.expect("the session is open");
    drop(send);
    session.closed().await;
}

/// Takes the unidirectional streams and the datagrams of the other end.
async fn gather(session: &Session) -> Result<(BTreeSet<u8>, BTreeSet<u8>)> {
    let mut streams = BTreeSet::new();
    let mut datagrams = BTreeSet::new();
    for _ in 0..EARLY {
        let mut stream = session.accept_uni().await?;
        streams.extend(stream.read_to_end(1).await?);
        let datagram = session.datagrams().receive().await;
        datagrams.extend(datagram.ok_or("the session has ended")?);
    }
    Ok((streams, datagrams))
}

/// Sends streams and datagrams of session 0 before its request, which waits for the server's settings.
async fn early() -> Result {
    let client = Client::connect().await?;
    for number in 0..EARLY {
        // The type of the stream and the number of the session (draft-ietf-webtrans-http3 §4.3).
        let mut send = client.quic.open_uni().await?;
        send.write_all(&[0x40, 0x54, 0, number]).await?;
        send.finish()?;
        let mut datagram = BytesMut::new();
        datagram.put_slice(&[0, number]);
        client.quic.send_datagram(datagram.freeze())?;
    }
    let session = client.open().await?;
    assert_eq!(session.id().value(), 0);
    let (streams, datagrams) = gather(&session).await?;
    let all: BTreeSet<u8> = (0..EARLY).collect();
    assert_eq!((streams, datagrams), (all.clone(), all.clone()));
    let mut both = BTreeSet::new();
    for _ in 0..EARLY {
        let (_, mut receive) = session.accept_bi().await?;
        both.extend(receive.read_to_end(1).await?);
    }
    assert_eq!(both, all);
    let (mut ask, mut verdict) = session.open_bi().await?;
    ask.write_all(b"?").await?;
    let verdict = String::from_utf8(verdict.read_to_end(1000).await?)?;
    assert_eq!(verdict, format!("{:?}", (&all, &all)));
    Ok(())
}

/// Whatever arrives first of SETTINGS, CONNECT, its response, streams and datagrams, nothing is lost.
#[test]
fn everything_early_finds_its_session_in_any_order() {
    for_each_seed(100, |seed| {
        let server = server(hurry, SECOND * 1000);
        let outcome = run(seed, "20ms,reorder=50%:30ms", server, early);
        outcome.expect("both ends have everything");
    });
}

/// A session that the client ends once the server asks for it.
async fn drained() -> Result<(Duration, Duration)> {
    let client = Client::connect().await?;
    let begun = runtime::now();
    let session = client.open().await?;
    exchange(session.clone(), 1).await?;
    session.draining().await;
    let asked = runtime::now() - begun;
    // The session still works, and no other one is accepted.
    exchange(session.clone(), 2).await?;
    assert!(client.open().await.is_err());
    session.close(7, "drained");
    client.quic.closed().await;
    Ok((asked, runtime::now() - begun))
}

#[test]
fn a_server_that_drains_waits_for_its_sessions() {
    for_each_seed(20, |seed| {
        let server = server(echo, 2 * SECOND);
        let times = run(seed, "20mbit,20ms,2%", server, drained);
        let (asked, ended) = times.expect("the session ends in order");
        assert!(asked >= 1900 * MS && asked < 3 * SECOND, "{asked:?}");
        assert!(ended < asked + 3 * SECOND, "{asked:?} {ended:?}");
    });
}

/// Streams one after the other while a NAT changes the client's address.
async fn moving() -> Result<Duration> {
    let client = Client::connect().await?;
    let session = client.open().await?;
    let begun = runtime::now();
    for number in 0..20 {
        exchange(session.clone(), number).await?;
        runtime::sleep(100 * MS).await;
    }
    Ok(runtime::now() - begun)
}

#[test]
fn sessions_survive_other_addresses() {
    for_each_seed(10, |seed| {
        for rebind in ["rebind=1s", "rebind=addr:1500ms"] {
            let server = server(echo, SECOND * 1000);
            let link = format!("20mbit,20ms,0.5%,{rebind}");
            let took = run(seed, &link, server, moving).expect("it survives");
            assert!(took < 20 * SECOND, "{rebind}: {took:?}");
        }
    });
}

/// Streams whose first bytes are not whole: the type, and one byte of eight of the number of a session.
async fn unfinished() -> Result<Duration> {
    let client = Client::connect().await?;
    let session = client.open().await?;
    let begun = runtime::now();
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut send = client.quic.open_uni().await?;
        send.write_all(&[0x40, 0x54, 0xc0]).await?;
        streams.push(send);
    }
    let all_stopped = async {
        for stream in &streams {
            stream.stopped().await?;
        }
        Result::Ok(runtime::now() - begun)
    };
    // Other streams continue, and keep the connection open.
    let others = async {
        loop {
            if let Err(error) = exchange(session.clone(), 1).await {
                return error;
            }
            runtime::sleep(5 * SECOND).await;
        }
    };
    tokio::select! {
        took = all_stopped => took,
        error = others => Err(error),
    }
}

/// Limit K582.
#[test]
fn streams_wait_for_the_rest_of_their_number_for_thirty_seconds() {
    let server = server(echo, SECOND * 1000);
    let took = run(1, "20ms", server, unfinished).expect("all are stopped");
    assert!(took >= 30 * SECOND && took < 31 * SECOND, "{took:?}");
}
