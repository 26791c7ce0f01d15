//! tquic as a peer of `courser interop matrix`: `peer-tquic server|client`, with the variables of the
//! QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.

mod handler;
mod http3;

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use tquic::{Config, Endpoint, PacketInfo, PacketSendHandler, TlsConfig, TransportHandler};

use crate::handler::{Handler, State};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// tquic marks no packets, has no version 2 and no preferred addresses, offers no call for key updates
/// and no choice of suites.
const BOTH: [&str; 7] = [
    "handshake",
    "transfer",
    "multiconnect",
    "retry",
    "resumption",
    "zerortt",
    "http3",
];

fn main() -> Result<ExitCode> {
    let test = env::var("TESTCASE")?;
    let is_server = env::args().nth(1).as_deref() == Some("server");
    // A server has no part in the choice of the suite.
    if !BOTH.contains(&test.as_str()) && !(is_server && test == "chacha20") {
        return Ok(ExitCode::from(127));
    }
    if is_server {
        serve(&test)?;
    } else {
        fetch(&test)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Settings of both ends, with windows that a transfer has to raise.
fn config() -> Result<Config> {
    let mut config = Config::new()?;
    config.set_max_idle_timeout(60_000);
    config.set_max_handshake_timeout(60_000);
    config.set_initial_max_data(1 << 20);
    config.set_initial_max_stream_data_bidi_local(1 << 19);
    config.set_initial_max_stream_data_bidi_remote(1 << 19);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_stream_data_uni(1 << 16);
    config.set_initial_max_streams_uni(10);
    Ok(config)
}

fn folder(variable: &str) -> Result<PathBuf> {
    Ok(env::var(variable)?.into())
}

fn protocols(is_http3: bool) -> Vec<Vec<u8>> {
    let name: &[u8] = if is_http3 { b"h3" } else { b"hq-interop" };
    vec![name.to_vec()]
}

fn serve(test: &str) -> Result {
    let certificates = folder("CERTS")?;
    let file = |name| certificates.join(name).to_string_lossy().into_owned();
    let mut config = config()?;
    let (certificate, key) = (file("cert.pem"), file("priv.key"));
    let tls = TlsConfig::new_server_config(&certificate, &key, protocols(test == "http3"), true)?;
    config.set_tls_config(tls);
    config.enable_retry(test == "retry");
    let socket = Rc::new(Socket::bind(env::var("LISTEN")?.parse()?)?);
    let root = folder("WWW")?;
    let handler: Box<dyn TransportHandler> = if test == "http3" {
        let state = http3::State::server(root);
        Box::new(http3::Handler(Rc::new(RefCell::new(state))))
    } else {
        Box::new(Handler(Rc::new(RefCell::new(State::server(root)))))
    };
    let mut endpoint = Endpoint::new(Box::new(config), true, handler, socket.clone());
    loop {
        turn(&mut endpoint, &socket)?;
    }
}

fn fetch(test: &str) -> Result {
    let requests = env::var("REQUESTS")?;
    let urls: Vec<&str> = requests.split_whitespace().collect();
    match test {
        "multiconnect" => {
            for url in &urls {
                download(std::slice::from_ref(url), None, false)?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, others) = urls.split_at(1);
            let session = download(first, None, true)?;
            let session = session.ok_or("the server sent no ticket")?;
            download(others, Some((&session, test == "zerortt")), false)?;
        }
        "http3" => download_http3(&urls)?,
        _ => drop(download(&urls, None, false)?),
    }
    Ok(())
}

/// Downloads files over one connection. `session` is one to resume, and true if it carries requests
/// early. Waits for a ticket if `wants_ticket`, and returns it.
fn download(
    urls: &[&str],
    session: Option<(&[u8], bool)>,
    wants_ticket: bool,
) -> Result<Option<Vec<u8>>> {
    let (authority, paths) = parts(urls)?;
    let server: SocketAddr = authority.parse()?;
    let socket = Rc::new(Socket::client(server)?);
    let is_early = session.is_some_and(|(_, is_early)| is_early);
    let config = client_config(false, is_early)?;
    let state = State::client(folder("DOWNLOADS")?, paths);
    let state = Rc::new(RefCell::new(state));
    let handler = Box::new(Handler(state.clone()));
    let mut endpoint = Endpoint::new(Box::new(config), false, handler, socket.clone());
    let session = session.map(|(session, _)| session);
    let local = socket.local;
    let index = endpoint.connect(local, server, Some("localhost"), session, None, None)?;
    let mut done_at: Option<Instant> = None;
    loop {
        turn(&mut endpoint, &socket)?;
        let connection = endpoint.conn_get_mut(index);
        let connection = connection.ok_or("the connection was closed before the files arrived")?;
        let mut state = state.borrow_mut();
        if connection.is_established() {
            state.request(connection);
        }
        if !state.is_done() {
            continue;
        }
        let session = connection.session().map(<[u8]>::to_vec);
        let waits = wants_ticket && session.is_none();
        if !waits || done_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            connection.close(true, 0, b"")?;
            drop(state);
            endpoint.process_connections()?;
            return Ok(session);
        }
    }
}

fn download_http3(urls: &[&str]) -> Result {
    let (authority, paths) = parts(urls)?;
    let server: SocketAddr = authority.parse()?;
    let socket = Rc::new(Socket::client(server)?);
    let state = http3::State::client(folder("DOWNLOADS")?, authority, paths);
    let state = Rc::new(RefCell::new(state));
    let handler = Box::new(http3::Handler(state.clone()));
    let config = Box::new(client_config(true, false)?);
    let mut endpoint = Endpoint::new(config, false, handler, socket.clone());
    let index = endpoint.connect(socket.local, server, Some("localhost"), None, None, None)?;
    loop {
        turn(&mut endpoint, &socket)?;
        let connection = endpoint.conn_get_mut(index);
        let connection = connection.ok_or("the connection was closed before the files arrived")?;
        let mut state = state.borrow_mut();
        state.request(connection);
        if let Some(reason) = state.failure() {
            return Err(reason.into());
        }
        if state.is_done() {
            // H3_NO_ERROR.
            connection.close(true, 0x100, b"")?;
            drop(state);
            endpoint.process_connections()?;
            return Ok(());
        }
    }
}

/// Returns the authority and the paths of URLs.
fn parts<'a>(urls: &[&'a str]) -> Result<(&'a str, Vec<String>)> {
    let mut paths = Vec::new();
    let mut authority = "";
    for url in urls {
        let rest = url.strip_prefix("https://").ok_or("no https URL")?;
        let (host, path) = rest.split_once('/').ok_or("no path")?;
        authority = host;
        paths.push(path.to_owned());
    }
    Ok((authority, paths))
}

fn client_config(is_http3: bool, is_early: bool) -> Result<Config> {
    let mut config = config()?;
    let mut tls = TlsConfig::new_client_config(protocols(is_http3), is_early)?;
    tls.set_verify(false);
    config.set_tls_config(tls);
    Ok(config)
}

/// Sends what is due, and waits for a datagram or a timer.
fn turn(endpoint: &mut Endpoint, socket: &Socket) -> Result {
    endpoint.process_connections()?;
    let wait = endpoint.timeout().unwrap_or(POLL).min(POLL);
    let deadline = Instant::now() + wait;
    let mut buffer = [0; 65536];
    loop {
        let received = socket.socket.recv_from(&mut buffer);
        if let Ok((len, from)) = received {
            let info = PacketInfo {
                src: from,
                dst: socket.local,
                time: Instant::now(),
            };
            // A packet that is not authentic is no reason to end.
            let _ = endpoint.recv(&mut buffer[..len], &info);
            break;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(TICK));
    }
    endpoint.on_timeout(Instant::now());
    Ok(())
}

struct Socket {
    socket: UdpSocket,
    local: SocketAddr,
}

impl Socket {
    /// Binds a socket for a server of this family.
    fn client(server: SocketAddr) -> Result<Self> {
        let any = if server.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        Self::bind(any.parse()?)
    }

    fn bind(address: SocketAddr) -> Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local })
    }
}

impl PacketSendHandler for Socket {
    fn on_packets_send(
        &self,
        packets: &[(Vec<u8>, PacketInfo)],
    ) -> std::result::Result<usize, tquic::Error> {
        for (count, (packet, info)) in packets.iter().enumerate() {
            match self.socket.send_to(packet, info.dst) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count),
                // The packet is lost; a closed port may be the one of an earlier connection.
                _ => {}
            }
        }
        Ok(packets.len())
    }
}

fn log_keys(connection: &mut tquic::Connection) {
    if let Ok(path) = env::var("SSLKEYLOGFILE")
        && let Ok(file) = OpenOptions::new().create(true).append(true).open(path)
    {
        connection.set_keylog(Box::new(file));
    }
}

/// The longest wait for a datagram.
const POLL: Duration = Duration::from_millis(20);

/// The longest sleep between two looks at the socket.
const TICK: Duration = Duration::from_micros(500);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
