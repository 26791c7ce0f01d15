//! tquic as a peer of `courser interop matrix`: `peer-tquic server|client`, with the variables of the
//! QUIC interop runner and LISTEN, WWW, CERTS and DOWNLOADS.

mod handler;

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

use tquic::{Config, Endpoint, PacketInfo, PacketSendHandler, TlsConfig};

use crate::handler::{Handler, State};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// tquic marks no packets, has no version 2 and no preferred addresses, offers no call for key updates
/// and no choice of suites. Its HTTP/3 is not used here.
const BOTH: [&str; 6] = [
    "handshake",
    "transfer",
    "multiconnect",
    "retry",
    "resumption",
    "zerortt",
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
    Ok(config)
}

fn folder(variable: &str) -> Result<PathBuf> {
    Ok(env::var(variable)?.into())
}

fn protocols() -> Vec<Vec<u8>> {
    vec![b"hq-interop".to_vec()]
}

fn serve(test: &str) -> Result {
    let certificates = folder("CERTS")?;
    let file = |name| certificates.join(name).to_string_lossy().into_owned();
    let mut config = config()?;
    let (certificate, key) = (file("cert.pem"), file("priv.key"));
    let tls = TlsConfig::new_server_config(&certificate, &key, protocols(), true)?;
    config.set_tls_config(tls);
    config.enable_retry(test == "retry");
    let socket = Rc::new(Socket::bind(env::var("LISTEN")?.parse()?)?);
    let state = State::server(folder("WWW")?);
    let handler = Box::new(Handler(Rc::new(RefCell::new(state))));
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
    let mut paths = Vec::new();
    let mut authority = "";
    for url in urls {
        let rest = url.strip_prefix("https://").ok_or("no https URL")?;
        let (host, path) = rest.split_once('/').ok_or("no path")?;
        authority = host;
        paths.push(path.to_owned());
    }
    let server: SocketAddr = authority.parse()?;
    let any = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = Rc::new(Socket::bind(any.parse()?)?);
    let mut config = config()?;
    let is_early = session.is_some_and(|(_, is_early)| is_early);
    let mut tls = TlsConfig::new_client_config(protocols(), is_early)?;
    tls.set_verify(false);
    config.set_tls_config(tls);
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
