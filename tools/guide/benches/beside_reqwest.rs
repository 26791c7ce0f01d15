//! The same requests with `courser::Client`, with reqwest and with hyper, for a comparison of what they cost.
//!
//! ```text
//! beside_reqwest serve CERT              serves, writes its certificate, and prints its URL
//! beside_reqwest CLIENT ROW N URL CERT   sends N requests, and prints the CPU time of each
//! ```
//!
//! CLIENT is `courser`, `courser-send` (with requests of the http crate), `reqwest` or `hyper` (the pooled client of
//! hyper-util with hyper-rustls); all use HTTP/2. ROW is `small`
//! (GET of 11 bytes, one after the other), `large` (1 MB each) or `many` (small ones, 100 at a time).

use std::future::Future;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::client::HttpVersion;
use courser::rustls::pki_types::CertificateDer;
use courser::{Client, Identity, rustls};
use http_body_util::BodyExt as _;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match arguments[..] {
        ["serve", certificate] => runtime.block_on(serve(Path::new(certificate))),
        [client, row, count, url, certificate] => {
            let certificate = std::fs::read(certificate)?;
            let run = Run::of(row, count.parse()?, url)?;
            runtime.block_on(measure(client, run, certificate))
        }
        _ => {
            println!("usage: beside_reqwest serve CERT | CLIENT ROW N URL CERT");
            Ok(())
        }
    }
}

async fn serve(certificate: &Path) -> Result {
    let identity = Identity::dev()?;
    std::fs::write(certificate, identity.certificate())?;
    let large = bytes::Bytes::from(vec![b'x'; 1_000_000]);
    let app = Router::new()
        .route("/small", get(|| async { "hello world" }))
        .route("/large", get(move || async move { large }));
    let server = courser::serve("127.0.0.1:0", identity).bind()?;
    println!("https://localhost:{}", server.local_addr().port());
    std::io::stdout().flush()?;
    server.service(app).await?;
    Ok(())
}

#[derive(Clone)]
struct Run {
    url: String,
    len: usize,
    count: usize,
    at_once: usize,
}

impl Run {
    fn of(row: &str, count: usize, url: &str) -> Result<Self> {
        let (path, len, at_once) = match row {
            "small" => ("small", 11, 1),
            "large" => ("large", 1_000_000, 1),
            "many" => ("small", 11, 100),
            _ => return Err(format!("no row '{row}'").into()),
        };
        let url = format!("{url}/{path}");
        Ok(Self {
            url,
            len,
            count,
            at_once,
        })
    }
}

async fn measure(client: &str, run: Run, certificate: Vec<u8>) -> Result {
    match client {
        "reqwest" => {
            let root = reqwest::Certificate::from_der(&certificate)?;
            let client = reqwest::Client::builder()
                .tls_certs_only([root])
                .no_proxy()
                .build()?;
            repeat(run, move |url| {
                let client = client.clone();
                async move { Ok(client.get(url).send().await?.bytes().await?.len()) }
            })
            .await
        }
        "courser" => {
            let client = own(certificate)?;
            repeat(run, move |url| {
                let client = client.clone();
                async move { Ok(client.get(url).send().await?.bytes().await?.len()) }
            })
            .await
        }
        "courser-send" => {
            let client = own(certificate)?;
            repeat(run, move |url| {
                let client = client.clone();
                async move {
                    let request = http::Request::get(url).body(courser::h3::Empty)?;
                    let body = client.send(request).await?.into_body();
                    Ok(body.collect().await?.to_bytes().len())
                }
            })
            .await
        }
        "hyper" => {
            let client = hyper(certificate)?;
            repeat(run, move |url| {
                let client = client.clone();
                async move {
                    let body = client.get(url.parse()?).await?.into_body();
                    Ok(body.collect().await?.to_bytes().len())
                }
            })
            .await
        }
        _ => Err(format!("no client '{client}'").into()),
    }
}

fn hyper(certificate: Vec<u8>) -> Result<PooledHyper> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(certificate))?;
    let tls = rustls::ClientConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http2()
        .build();
    Ok(legacy::Client::builder(TokioExecutor::new()).build(connector))
}

type PooledHyper = legacy::Client<
    hyper_rustls::HttpsConnector<legacy::connect::HttpConnector>,
    courser::h3::Empty,
>;

fn own(certificate: Vec<u8>) -> Result<Client> {
    let client = Client::builder()
        .platform_roots(false)
        .root(CertificateDer::from(certificate))
        .proxy(courser::client::Proxy::Direct)
        .version(HttpVersion::Http2)
        .build()?;
    Ok(client)
}

/// Sends the requests, the first one alone, and prints the CPU time for each of the others.
async fn repeat<F>(run: Run, request: impl Fn(String) -> F + Send + Sync + 'static) -> Result
where
    F: Future<Output = Result<usize>> + Send + 'static,
{
    assert_eq!(request(run.url.clone()).await?, run.len);
    let before = cpu_time()?;
    let (run, request) = (Arc::new(run), Arc::new(request));
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..run.at_once {
        let (run, request, next) = (run.clone(), request.clone(), next.clone());
        tasks.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < run.count {
                assert_eq!(request(run.url.clone()).await?, run.len);
            }
            Result::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let spent = cpu_time()?.saturating_sub(before);
    let each = spent.as_secs_f64() * 1e6 / run.count.max(1) as f64;
    println!("{each:.2} us of CPU time for each request");
    Ok(())
}

/// Returns the CPU time of this process, from Linux, in nanoseconds.
fn cpu_time() -> Result<Duration> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let nanoseconds = text.split(' ').next().unwrap_or_default();
        sum += nanoseconds.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}
