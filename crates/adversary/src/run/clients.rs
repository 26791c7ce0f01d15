//! Honest clients in a separate process: `courser-adversary clients MODE`.
//!
//! They use courser's own client: one endpoint and socket each, its default TLS, and HTTP/3. The
//! process reports as one line of JSON. Its CPU time is separate from that of attacker and server.

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

/// Runs the mode that the arguments select.
pub(super) fn main(arguments: &[String]) -> Result<(), String> {
    let (mode, options) = arguments
        .split_first()
        .ok_or("missing the name of a mode")?;
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

/// Options of a mode, each as `NAME=VALUE`.
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

    /// Parses the value of an option.
    fn get<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let found = self.0.iter().find(|(other, _)| other == name);
        let value = found.and_then(|(_, value)| value.parse().ok());
        value.ok_or_else(|| format!("{name} is missing or invalid"))
    }
}

/// Raises the limit of open files, because every client has a socket.
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

/// Returns the TLS configuration of honest clients. They never resume sessions, so that every
/// handshake is complete.
fn config() -> Result<courser::ClientConfig, String> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![b"h3".to_vec()])
    };
    let tls = courser_tls::client_config(options).map_err(|error| error.to_string())?;
    Ok(courser::ClientConfig::with_rustls(tls).token_store(None))
}

/// Creates an endpoint with its own port.
fn endpoint(config: &courser::ClientConfig) -> Result<Endpoint, String> {
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .map_err(|error| format!("cannot open a socket: {error}"))?;
    endpoint.set_default_client_config(config.clone());
    Ok(endpoint)
}

/// Requests the small file and checks its content.
async fn fetch(client: &h3::Client) -> Result<(), String> {
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

/// Returns a short text for an error.
fn label(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.chars().take(MAX_LABEL).collect()
}

/// The largest length of a label in bytes. Errors are counted by their labels.
const MAX_LABEL: usize = 80;

/// Returns the CPU time of this process in seconds.
fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns a quantile of sorted times in seconds.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (share * last as f64).round() as usize;
    sorted.get(index.min(last)).copied().unwrap_or(0.0)
}
