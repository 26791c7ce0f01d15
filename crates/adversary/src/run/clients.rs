//! Honest clients, in a process of their own: `courser-adversary clients MODE`.
//!
//! They are courser's own client: an endpoint with a socket for each, the TLS of the product, and
//! HTTP/3. The process prints one line of JSON, so that its CPU time can be told from that of the
//! attacker and of the server.

mod arrivals;
mod handshakes;
mod idle;
mod soak;

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use bytes::Bytes;
use courser::{Endpoint, h3};
use courser_tls::rustls::client::Resumption;
use courser_tls::{ClientOptions, Trust};
use http::Request;
use http_body_util::{BodyExt as _, Empty};

use super::process::SMALL;

/// Runs one mode.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let (mode, options) = arguments.split_first().ok_or("no mode is named")?;
    allow_many_sockets()?;
    let options = Options::read(options)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        match mode.as_str() {
            "arrivals" => arrivals::run(&options).await,
            "handshakes" => handshakes::run(&options).await,
            "soak" => soak::run(&options).await,
            "idle" => idle::run(&options).await,
            other => Err(format!("unknown mode `{other}`")),
        }
    })
}

/// Settings of a mode, `NAME=VALUE` each.
struct Options(Vec<(String, String)>);

impl Options {
    fn read(words: &[String]) -> Result<Self, String> {
        let pair = |word: &String| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let pairs = words
            .iter()
            .map(|word| pair(word).ok_or_else(|| format!("`{word}` is not NAME=VALUE")));
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// The value of a setting.
    fn get<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let found = self.0.iter().find(|(other, _)| other == name);
        let value = found.and_then(|(_, value)| value.parse().ok());
        value.ok_or_else(|| format!("{name} is missing or not valid"))
    }
}

/// Every client has a socket.
fn allow_many_sockets() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))
}

/// TLS of honest clients. They never resume: each handshake is a whole one.
fn config() -> Result<courser::ClientConfig, String> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![b"h3".to_vec()])
    };
    let tls = courser_tls::client_config(options).map_err(|error| error.to_string())?;
    Ok(courser::ClientConfig::with_rustls(tls).token_store(None))
}

/// An endpoint on a port of its own.
fn endpoint(config: &courser::ClientConfig) -> Result<Endpoint, String> {
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .map_err(|error| format!("cannot open a socket: {error}"))?;
    endpoint.set_default_client_config(config.clone());
    Ok(endpoint)
}

/// Asks for the small file, and checks all of it.
async fn ask(client: &h3::Client) -> Result<(), String> {
    let request = Request::get("https://localhost/")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(label)?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()));
    }
    let body = response.into_body().collect().await.map_err(label)?;
    let bytes = body.to_bytes();
    if bytes.len() != SMALL || bytes.iter().any(|byte| *byte != b'x') {
        return Err("wrong bytes".to_owned());
    }
    Ok(())
}

/// A failure as one of few words.
fn label(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.chars().take(MAX_LABEL).collect()
}

/// Reasons are counted by their text.
const MAX_LABEL: usize = 80;

/// CPU time of this process, in seconds.
fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The value below which this share of sorted times lies, in seconds.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (share * last as f64).round() as usize;
    sorted.get(index.min(last)).copied().unwrap_or(0.0)
}
