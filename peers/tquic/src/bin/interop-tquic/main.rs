//! tquic as an end of `courser interop matrix`: `interop-tquic server|client`.

mod http09;
mod http3;
mod protocol;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use peer_tquic::end::End;
use peer_tquic::setup::{self, Limits, Windows};
use peer_tquic::socket::Socket;
use peers_common::interop::{Cases, Client, Connection, Result, SERVER_NAME, Server, Start, run};
use tokio::runtime::Builder;
use tokio::time::timeout;
use tquic::{Config, TlsConfig, TransportHandler};

use crate::http3::Http3;
use crate::http09::Http09;
use crate::protocol::{Downloads, Files, Handler, Protocol};

/// tquic marks no packets, has no version 2 and no preferred addresses, offers no call for key updates
/// and no choice of suites. A server has no part in that choice.
const CASES: Cases = Cases {
    both: &[
        "handshake",
        "transfer",
        "multiconnect",
        "retry",
        "resumption",
        "zerortt",
        HTTP3,
    ],
    server: &["chacha20"],
};

fn main() -> Result<ExitCode> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    run(
        CASES,
        |settings| runtime.block_on(serve(settings)),
        |settings| runtime.block_on(fetch(settings)),
    )
}

/// Settings of both ends, with windows that a transfer has to raise.
fn config(tls: TlsConfig) -> Result<Config> {
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    let limits = Limits {
        idle: Duration::from_secs(60),
        streams: 100,
        windows: Some(Windows {
            stream: 1 << 19,
            connection: 1 << 20,
        }),
    };
    limits.set(&mut config)?;
    config.set_max_handshake_timeout(60_000);
    // HTTP/3 has three from each end, and one more without meaning.
    config.set_initial_max_streams_uni(10);
    config.set_initial_max_stream_data_uni(1 << 16);
    Ok(config)
}

fn protocols(case: &str) -> Vec<Vec<u8>> {
    let name: &[u8] = if case == HTTP3 { b"h3" } else { b"hq-interop" };
    vec![name.to_vec()]
}

async fn serve(settings: Server) -> Result {
    let tls = setup::server_tls(
        &settings.certificate,
        &settings.key,
        protocols(&settings.case),
        true,
    )?;
    let mut config = config(tls)?;
    config.enable_retry(settings.case == "retry");
    let socket = Rc::new(Socket::bind(settings.listen)?);
    let handler: Box<dyn TransportHandler> = if settings.case == HTTP3 {
        let http3 = Http3::new(Files::Served(settings));
        Box::new(Handler(Rc::new(RefCell::new(http3))))
    } else {
        let http09 = Http09::new(Files::Served(settings));
        Box::new(Handler(Rc::new(RefCell::new(http09))))
    };
    let mut end = End::server(config, handler, socket);
    loop {
        end.process();
        end.wait().await?;
    }
}

async fn fetch(settings: Client) -> Result {
    let mut session = None;
    for connection in settings.connections() {
        let downloads = Downloads::new(settings.clone(), connection.files);
        let files = Files::Wanted(downloads);
        session = if settings.case == HTTP3 {
            download(&settings, connection, Http3::new(files), session).await?
        } else {
            download(&settings, connection, Http09::new(files), session).await?
        };
    }
    Ok(())
}

/// Downloads the files of a connection. Waits for a ticket if the case needs one, and returns it.
async fn download(
    settings: &Client,
    connection: Connection<'_>,
    protocol: impl Protocol + 'static,
    session: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let session = match connection.start {
        Start::Full => None,
        Start::Resumed | Start::Early => Some(session.ok_or("the server sent no ticket")?),
    };
    let is_early = connection.start == Start::Early;
    let mut tls = TlsConfig::new_client_config(protocols(&settings.case), is_early)?;
    tls.set_verify(false);
    let socket = Rc::new(Socket::bind(settings.local())?);
    let protocol = Rc::new(RefCell::new(protocol));
    let handler = Box::new(Handler(protocol.clone()));
    let mut end = End::client(config(tls)?, handler, socket.clone());
    let index = end.endpoint.connect(
        socket.local_address(),
        settings.server,
        Some(SERVER_NAME),
        session.as_deref(),
        None,
        None,
    )?;
    let needs_ticket = settings.resumes() && connection.start == Start::Full;
    let mut done_at: Option<Instant> = None;
    loop {
        end.process();
        if let Ok(woken) = timeout(POLL, end.wait()).await {
            woken?;
        }
        let connection = end.endpoint.conn_get_mut(index);
        let connection = connection.ok_or("the connection was closed before the files arrived")?;
        protocol.borrow_mut().request(connection);
        if !protocol.borrow().is_done()? {
            continue;
        }
        let session = connection.session().map(<[u8]>::to_vec);
        let waits = needs_ticket && session.is_none();
        if !waits || done_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            let code = if settings.case == HTTP3 { NO_ERROR } else { 0 };
            connection.close(true, code, b"")?;
            end.process();
            return Ok(session);
        }
    }
}

/// The case of HTTP/3.
const HTTP3: &str = "http3";

/// H3_NO_ERROR, RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;

/// The longest wait for a datagram.
const POLL: Duration = Duration::from_millis(20);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
