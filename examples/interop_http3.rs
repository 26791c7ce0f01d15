//! One end of an exchange over HTTP/3 with a peer of any stack. The scripts in `interop/` run it.
//!
//! `interop_http3 server CERTIFICATE KEY [ADDRESS]` serves until it is killed:
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | a short text |
//! | `GET /bytes/N` | N bytes: the first of the endless repetition of [`block`] |
//! | `POST /hash` | length and SHA-256 of the body: `length hash` |
//! | `POST /echo` | the body, while it arrives |
//! | `GET /page/N` | a page that loads N objects and shows the protocols that carried them |
//! | `GET /object/N` | one of these objects |
//!
//! `interop_http3 client ROOT ADDRESS SIZE COUNT` tests a server with the first three: it compares the hashes of
//! SIZE bytes in both directions, requests a path that does not exist, and sends COUNT short requests at once.
//! `fetch` instead of `client` omits the upload, and `slow ROOT ADDRESS SIZE SECONDS` starts to read after this
//! time.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{Context, SHA256};
use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, StatusCode};
use axum::response::Html;
use axum::routing::{get, post};
use bytes::Bytes;
use courser::rustls::pki_types::{CertificateDer, pem::PemObject};
use courser::{ClientConfig, Endpoint, Identity, ServerConfig, h3};
use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T = ()> = std::result::Result<T, Error>;

/// Returns 65521 bytes, a prime number, so that boundaries of frames fall on different offsets.
fn block() -> Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK
        .get_or_init(|| (0..65_521u32).map(|n| (n * 7 + (n >> 8)) as u8).collect())
        .clone()
}

/// Returns the first `count` bytes of the endless repetition of [`block`].
fn pattern(count: u64) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(count, |left| async move {
        let take = left.min(block().len() as u64);
        (take > 0).then(|| (block().slice(..take as usize), left - take))
    })
}

fn hex(hash: Context) -> String {
    let hash = hash.finish();
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

async fn hash_of_pattern(count: u64) -> String {
    let mut hash = Context::new(&SHA256);
    let mut chunks = Box::pin(pattern(count));
    while let Some(chunk) = chunks.next().await {
        hash.update(&chunk);
    }
    hex(hash)
}

/// Reads a body, and returns its length and hash.
async fn read<B>(mut body: B) -> Result<(u64, String)>
where
    B: http_body_util::BodyExt<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    let (mut length, mut hash) = (0, Context::new(&SHA256));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(Into::into)?.into_data() {
            length += data.len() as u64;
            hash.update(&data);
        }
    }
    Ok((length, hex(hash)))
}

fn app() -> Router {
    let bytes = |Path(count): Path<u64>| async move {
        Body::from_stream(pattern(count).map(Ok::<_, std::convert::Infallible>))
    };
    let hash = |body: Body| async move {
        match read(body).await {
            Ok((length, hash)) => (StatusCode::OK, format!("{length} {hash}")),
            Err(error) => (StatusCode::BAD_REQUEST, error.to_string()),
        }
    };
    let object = |Path(number): Path<u32>| async move { format!("loaded({number});\n") };
    Router::new()
        .route("/", get(|| async { "hello over HTTP/3\n" }))
        .route("/bytes/{count}", get(bytes))
        .route("/hash", post(hash))
        .route("/echo", post(|body: Body| async { body }))
        .route("/page/{count}", get(page))
        .route("/object/{number}", get(object))
}

/// Returns a page that counts the protocols of everything loaded, including itself.
async fn page(Path(count): Path<u32>) -> Html<String> {
    let objects: String = (0..count)
        .map(|n| format!("<script src=/object/{n}></script>\n"))
        .collect();
    Html(format!(
        "<!doctype html><title>objects</title><pre id=result></pre>
<script>
performance.setResourceTimingBufferSize({count} + 100);
let count = 0;
function loaded(number) {{ count += 1; }}
</script>
{objects}<script>
addEventListener('load', () => {{
  const protocols = {{}};
  const entries = ['navigation', 'resource'].flatMap(type => performance.getEntriesByType(type));
  for (const entry of entries.filter(entry => !entry.name.endsWith('.ico')))
    protocols[entry.nextHopProtocol] = (protocols[entry.nextHopProtocol] || 0) + 1;
  document.getElementById('result').textContent =
    JSON.stringify({{ objects: count, protocols }});
}});
</script>
"
    ))
}

async fn serve(certificate: &str, key: &str, address: SocketAddr) -> Result {
    let identity = Identity::from_pem_files(certificate, key)?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, address)?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let from = incoming.remote_address();
            let served = async { Ok::<_, Error>(h3::serve(incoming.await?, app()).await?) };
            match served.await {
                Ok(()) => println!("{from}: over"),
                Err(error) => println!("{from}: {error}"),
            }
        });
    }
    Ok(())
}

/// The task of a client.
struct Task {
    size: u64,
    count: u32,
    sends: bool,
    wait: Duration,
}

async fn ask(root: &str, address: &str, task: Task) -> Result {
    let address: SocketAddr = address.parse()?;
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let endpoint = Endpoint::client(any.parse()?)?;
    let config = ClientConfig::with_roots([CertificateDer::from_pem_file(root)?])?;
    let config = config.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let client = h3::Client::new(connection);
    let origin = format!("https://localhost:{}", address.port());

    let hash = down(&client, &origin, &task).await?;
    if task.sends {
        up(&client, &origin, task.size, &hash).await?;
    }
    let request = Request::get(format!("{origin}/not/there")).body(h3::Empty)?;
    let status = client.send(request).await?.status().as_u16();
    check("status of what is not there", status, 404)?;
    if task.count > 0 {
        let begun = Instant::now();
        at_once(&client, &origin, task.count).await?;
        println!("{} requests at once in {:.2?}", task.count, begun.elapsed());
    }
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}

async fn down(client: &h3::Client, origin: &str, task: &Task) -> Result<String> {
    let size = task.size;
    let begun = Instant::now();
    let request = Request::get(format!("{origin}/bytes/{size}")).body(h3::Empty)?;
    let response = client.send(request).await?;
    check("status of /bytes", response.status().as_u16(), 200)?;
    tokio::time::sleep(task.wait).await;
    let (length, hash) = read(response.into_body()).await?;
    check("bytes received", length, size)?;
    let time = begun.elapsed();
    check("hash", &hash, &hash_of_pattern(size).await)?;
    println!("{length} bytes down in {time:.2?}, the hashes agree");
    Ok(hash)
}

async fn up(client: &h3::Client, origin: &str, size: u64, expected: &str) -> Result {
    let begun = Instant::now();
    let body = pattern(size).map(|chunk| Ok::<_, Error>(http_body::Frame::data(chunk)));
    let request = Request::post(format!("{origin}/hash"))
        .header("content-length", size)
        .body(StreamBody::new(body))?;
    let answer = client.send(request).await?.into_body().collect().await?;
    let answer = String::from_utf8(answer.to_bytes().to_vec())?;
    check("what was sent", &answer[..], &format!("{size} {expected}"))?;
    let time = begun.elapsed();
    println!("{size} bytes up in {time:.2?}, the hashes agree");
    Ok(())
}

/// Sends `count` requests at once, whose answers all differ.
async fn at_once(client: &h3::Client, origin: &str, count: u32) -> Result {
    let tasks: Vec<_> = (0..count)
        .map(|n| {
            let (client, uri) = (client.clone(), format!("{origin}/bytes/{}", n % 1000));
            tokio::spawn(async move {
                let response = client.send(Request::get(uri).body(h3::Empty)?).await?;
                check("status", response.status().as_u16(), 200)?;
                let (length, hash) = read(response.into_body()).await?;
                check("length", length, u64::from(n % 1000))?;
                check("hash", hash, hash_of_pattern(length).await)
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn check<T: PartialEq + std::fmt::Display>(what: &str, seen: T, expected: T) -> Result {
    if seen == expected {
        return Ok(());
    }
    Err(format!("{what}: {seen}, expected {expected}").into())
}

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", certificate, key] => serve(certificate, key, "127.0.0.1:0".parse()?).await,
        ["server", certificate, key, address] => serve(certificate, key, address.parse()?).await,
        [how @ ("client" | "fetch"), root, address, size, count] => {
            let task = Task {
                size: size.parse()?,
                count: count.parse()?,
                sends: how == "client",
                wait: Duration::ZERO,
            };
            ask(root, address, task).await
        }
        ["slow", root, address, size, seconds] => {
            let task = Task {
                size: size.parse()?,
                count: 0,
                sends: false,
                wait: Duration::from_secs(seconds.parse()?),
            };
            ask(root, address, task).await
        }
        _ => Err("usage: interop_http3 server CERTIFICATE KEY [ADDRESS] | \
                  (client | fetch) ROOT ADDRESS SIZE COUNT | slow ROOT ADDRESS SIZE SECONDS"
            .into()),
    }
}
