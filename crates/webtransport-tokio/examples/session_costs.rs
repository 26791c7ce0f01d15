//! The CPU time of streams and sessions, of each end: `session_costs quic 100000` and `session_costs streams 100000` open
//! streams of one byte each way, 100 at a time, and `session_costs sessions 18000` opens and closes sessions, 15 at a time on
//! connections of 90 sessions each. Both ends are threads of this process, so that callgrind's `--separate-threads=yes`
//! counts them apart.

use std::sync::mpsc;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::{ClientConfig, Connection, Endpoint, Identity, RecvStream, SendStream};
use courser_quic::{ServerConfig, Side};
use courser_webtransport_tokio::{self as webtransport, Config, Session, SessionRequest};
use http::{Request, Response};
use tokio::task::JoinSet;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const IN_FLIGHT: u64 = 100;
const SESSIONS_OF_A_CONNECTION: u64 = 90;
const SESSIONS_IN_FLIGHT: u64 = 15;

fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().ok_or("name quic, streams or sessions")?;
    let count = arguments.next().ok_or("give a number")?.parse()?;
    let identity = Identity::dev()?;
    let (sender, server_address) = mpsc::channel();
    let quic = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let is_raw = what == "quic";
    std::thread::spawn(move || {
        runtime()?.block_on(async {
            let endpoint = Endpoint::server(quic, "127.0.0.1:0".parse()?)?;
            sender.send(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                let connection = incoming.into_future().await?;
                tokio::spawn(serve(connection, is_raw));
            }
            Result::Ok(())
        })
    });
    let server = server_address.recv()?;
    let quic = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    runtime()?.block_on(async {
        let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
        let connections = match what.as_str() {
            "sessions" => count / SESSIONS_OF_A_CONNECTION,
            _ => 1,
        };
        let mut clients = Vec::new();
        for _ in 0..connections {
            let connecting = endpoint.connect_with(quic.clone(), server, "localhost")?;
            clients.push(connecting.await?);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = cpu_ms()?;
        measure(&what, clients, count).await?;
        let after = cpu_ms()?;
        for (end, (after, before)) in ["client", "server"].iter().zip(after.iter().zip(&before)) {
            let each = (after - before) * 1000.0 / count as f64;
            println!("{end} {each:.2} us of CPU each");
        }
        Ok(())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// Returns the CPU time of each thread so far, the client's first.
fn cpu_ms() -> Result<Vec<f64>> {
    let mut threads = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task")? {
        let stat = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanos: f64 = stat.split(' ').next().ok_or("no time")?.parse()?;
        threads.push(nanos / 1e6);
    }
    Ok(threads)
}

async fn measure(what: &str, clients: Vec<Connection>, count: u64) -> Result {
    let mut tasks = JoinSet::new();
    for connection in clients {
        if what == "quic" {
            for _ in 0..IN_FLIGHT {
                let connection = connection.clone();
                tasks.spawn(async move {
                    for _ in 0..count / IN_FLIGHT {
                        let (mut send, mut receive) = connection.open_bi().await?;
                        send.write_all(b"x").await?;
                        send.finish()?;
                        receive.read_to_end(1).await?;
                    }
                    Result::Ok(())
                });
            }
            continue;
        }
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, config())?;
        let client = h3::Client::with_config(connection, settings);
        if what == "sessions" {
            for _ in 0..SESSIONS_IN_FLIGHT {
                let client = client.clone();
                tasks.spawn(async move {
                    for _ in 0..SESSIONS_OF_A_CONNECTION / SESSIONS_IN_FLIGHT {
                        open(&client).await?.close(0, "");
                    }
                    Ok(())
                });
            }
            continue;
        }
        let session = open(&client).await?;
        for _ in 0..IN_FLIGHT {
            let session = session.clone();
            tasks.spawn(async move {
                for _ in 0..count / IN_FLIGHT {
                    let (mut send, mut receive) = session.open_bi().await?;
                    send.write_all(b"x").await?;
                    send.finish()?;
                    receive.read_to_end(1).await?;
                }
                Ok(())
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn open(client: &h3::Client) -> Result<Session> {
    let request = SessionRequest::new("https://localhost/".parse()?);
    Ok(webtransport::connect(client, request).await?)
}

fn config() -> Config {
    Config {
        max_sessions: 1000,
        ..Config::new()
    }
}

/// Answers streams of one byte with one byte.
async fn serve(connection: Connection, is_raw: bool) -> Result {
    if is_raw {
        while let Ok((send, receive)) = connection.accept_bi().await {
            tokio::spawn(answer(send, receive));
        }
        return Ok(());
    }
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, config())?;
    let service = tower::service_fn(|mut request: Request<h3::Body>| async move {
        let upgrade = webtransport::upgrade(&mut request);
        let accepted: Response<h3::Empty> = upgrade.accept(answer_all).await;
        std::result::Result::<_, std::convert::Infallible>::Ok(accepted)
    });
    Ok(h3::serve(connection, service).config(settings).await?)
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result {
    receive.read_to_end(1).await?;
    send.write_all(b"y").await?;
    Ok(send.finish()?)
}

async fn answer_all(session: Session) {
    while let Ok((mut send, mut receive)) = session.accept_bi().await {
        tokio::spawn(async move {
            receive.read_to_end(1).await?;
            send.write_all(b"y").await?;
            send.finish()?;
            Result::Ok(())
        });
    }
}
