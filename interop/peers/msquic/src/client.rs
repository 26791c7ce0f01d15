//! The client: one connection at a time.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use msquic::ffi::{
    HQUIC, QUIC_PARAM_CONN_REMOTE_ADDRESS, QUIC_PARAM_CONN_RESUMPTION_TICKET,
    QUIC_PARAM_CONN_VERSION_SETTINGS,
};
use msquic::{
    Addr, AllowedCipherSuiteFlags, Api, BufferRef, Configuration, Connection, ConnectionEvent,
    ConnectionShutdownFlags, CredentialConfig, CredentialFlags, Registration, RegistrationConfig,
    SendFlags, Stream, StreamEvent, StreamOpenFlags, StreamStartFlags,
};

use crate::keys::Secrets;
use crate::{PROTOCOL, Result, VERSION_1, VERSION_2, exchange, folder, set_versions, settings};

pub(crate) fn fetch(test: &str) -> Result {
    let requests = env::var("REQUESTS")?;
    let urls: Vec<&str> = requests.split_whitespace().collect();
    let registration = Registration::new(&RegistrationConfig::default())?;
    let settings = match test {
        // All requests leave before the first answer.
        "zerortt" => settings(test).set_InitialWindowPackets(40),
        _ => settings(test),
    };
    let protocols = [BufferRef::from(PROTOCOL)];
    let configuration = Configuration::open(&registration, &protocols, Some(&settings))?;
    let mut tls = CredentialConfig::new_client()
        .set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION);
    if test == "chacha20" {
        tls = tls.set_allowed_cipher_suites(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256);
    }
    configuration.load_credential(&tls)?;
    let client = Client {
        registration: &registration,
        configuration: &configuration,
        test,
    };
    match test {
        "multiconnect" => {
            for url in &urls {
                client.download(std::slice::from_ref(url), None)?;
            }
        }
        "resumption" | "zerortt" => {
            let (first, others) = urls.split_at(1);
            let ticket = client.download(first, None)?;
            let ticket = ticket.ok_or("the server sent no ticket")?;
            client.download(others, Some(&ticket))?;
        }
        _ => drop(client.download(&urls, None)?),
    }
    Ok(())
}

struct Client<'a> {
    registration: &'a Registration,
    configuration: &'a Configuration,
    test: &'a str,
}

/// An event of a connection.
enum Event {
    /// The first data of a file arrived.
    Began,
    File {
        name: String,
        content: Vec<u8>,
    },
    Ticket(Vec<u8>),
    /// The reason for the end of a connection that the client did not close.
    Failed(String),
    Ended,
}

impl Client<'_> {
    /// Downloads files over one connection. Returns the ticket if the test needs one.
    fn download(&self, urls: &[&str], ticket: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let (server, names) = split(urls)?;
        let (sender, events) = channel();
        let connection = self.open(server, ticket, sender.clone())?;
        let is_early = ticket.is_some() && self.test == "zerortt";
        let mut streams = Vec::new();
        for name in &names {
            streams.push(request(&connection, name, is_early, sender.clone())?);
        }
        // The address is set, and the name goes into the ClientHello.
        connection.start(self.configuration, "localhost", server.port())?;
        let needs_ticket = ticket.is_none() && matches!(self.test, "resumption" | "zerortt");
        let ticket = self.run(&connection, &events, names.len(), needs_ticket)?;
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
        while !matches!(events.recv()?, Event::Ended) {}
        drop(streams);
        Ok(ticket)
    }

    fn open(
        &self,
        server: SocketAddr,
        ticket: Option<&[u8]>,
        events: Sender<Event>,
    ) -> Result<Connection> {
        let mut secrets = None;
        let (set_secrets, given) = channel::<Secrets>();
        let connection = Connection::open(self.registration, move |_, event| {
            let event = match event {
                ConnectionEvent::Connected { .. } => {
                    secrets = secrets.take().or_else(|| given.try_recv().ok());
                    if let Some(secrets) = &secrets {
                        secrets.log();
                    }
                    return Ok(());
                }
                ConnectionEvent::ResumptionTicketReceived { resumption_ticket } => {
                    Event::Ticket(resumption_ticket.to_vec())
                }
                ConnectionEvent::ShutdownInitiatedByTransport { status, error_code } => {
                    Event::Failed(format!("the connection failed: {status}, {error_code:#x}"))
                }
                ConnectionEvent::ShutdownInitiatedByPeer { error_code } => {
                    Event::Failed(format!("the server closed with {error_code:#x}"))
                }
                ConnectionEvent::ShutdownComplete { .. } => Event::Ended,
                _ => return Ok(()),
            };
            let _ = events.send(event);
            Ok(())
        })?;
        // SAFETY: the connection is open, and closed after all uses.
        let handle = unsafe { connection.as_raw() };
        set_secrets.send(Secrets::collect(handle)?)?;
        set(handle, QUIC_PARAM_CONN_REMOTE_ADDRESS, &Addr::from(server))?;
        if let Some(ticket) = ticket {
            let len = u32::try_from(ticket.len())?;
            let parameter = QUIC_PARAM_CONN_RESUMPTION_TICKET;
            // SAFETY: msquic copies the ticket during the call.
            unsafe { Api::set_param(handle, parameter, len, ticket.as_ptr().cast()) }?;
        }
        if self.test == "v2" {
            let (offered, begun) = ([VERSION_2, VERSION_1], [VERSION_1, VERSION_2]);
            set_versions(handle, QUIC_PARAM_CONN_VERSION_SETTINGS, &offered, &begun)?;
        }
        Ok(connection)
    }

    /// Waits for all files, and for a ticket if one is needed.
    fn run(
        &self,
        connection: &Connection,
        events: &Receiver<Event>,
        mut missing: usize,
        needs_ticket: bool,
    ) -> Result<Option<Vec<u8>>> {
        let folder: PathBuf = folder("DOWNLOADS")?;
        let mut ticket = None;
        let mut wants_update = false;
        let mut done_at: Option<Instant> = None;
        while missing > 0 || (needs_ticket && ticket.is_none()) {
            match events.recv_timeout(POLL) {
                Ok(Event::Began) => wants_update |= self.test == "keyupdate",
                Ok(Event::File { name, content }) => {
                    fs::write(folder.join(name), content)?;
                    missing -= 1;
                }
                Ok(Event::Ticket(received)) => ticket = Some(received),
                Ok(Event::Failed(reason)) => return Err(reason.into()),
                Ok(Event::Ended) => return Err("the connection ended".into()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(error) => return Err(error.into()),
            }
            // SAFETY: the connection is open.
            if wants_update && update_keys(unsafe { connection.as_raw() }) {
                wants_update = false;
            }
            if missing == 0 && done_at.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
        }
        Ok(ticket)
    }
}

/// Returns the address of the server, and the names of the files.
fn split(urls: &[&str]) -> Result<(SocketAddr, Vec<String>)> {
    let mut names = Vec::new();
    let mut authority = "";
    for url in urls {
        let rest = url.strip_prefix("https://").ok_or("no https URL")?;
        let (host, name) = rest.split_once('/').ok_or("no path")?;
        authority = host;
        names.push(name.to_owned());
    }
    Ok((authority.parse()?, names))
}

/// Makes a request, which leaves as soon as the handshake and the server's limit of streams allow.
fn request(
    connection: &Connection,
    name: &str,
    is_early: bool,
    events: Sender<Event>,
) -> Result<Stream> {
    let flags = match is_early {
        true => SendFlags::ALLOW_0_RTT,
        false => SendFlags::NONE,
    };
    let data = format!("GET /{name}\r\n").into_bytes();
    let (name, mut content) = (name.to_owned(), Vec::new());
    let stream = Stream::open(connection, StreamOpenFlags::NONE, move |_, event| {
        let event = match event {
            StreamEvent::Receive { buffers, .. } => {
                let is_first = content.is_empty();
                exchange::receive(&mut content, buffers);
                if !is_first {
                    return Ok(());
                }
                Event::Began
            }
            StreamEvent::PeerSendShutdown => Event::File {
                name: name.clone(),
                content: std::mem::take(&mut content),
            },
            StreamEvent::PeerSendAborted { error_code } => {
                Event::Failed(format!("the server reset {name} with {error_code}"))
            }
            StreamEvent::SendComplete { client_context, .. } => {
                // SAFETY: all data of the client's streams is sent with `exchange::send`.
                unsafe { exchange::on_send_complete(client_context) };
                return Ok(());
            }
            _ => return Ok(()),
        };
        let _ = events.send(event);
        Ok(())
    })?;
    stream.start(StreamStartFlags::NONE)?;
    exchange::send(&stream, data, flags)?;
    Ok(stream)
}

/// Begins a key update. Returns false before the handshake is confirmed.
fn update_keys(connection: HQUIC) -> bool {
    // SAFETY: the parameter has no value.
    unsafe { Api::set_param(connection, FORCE_KEY_UPDATE, 0, ptr::null()) }.is_ok()
}

fn set<T>(handle: HQUIC, parameter: u32, value: &T) -> Result {
    let len = u32::try_from(size_of::<T>())?;
    // SAFETY: msquic copies the value during the call.
    unsafe { Api::set_param(handle, parameter, len, ptr::from_ref(value).cast()) }?;
    Ok(())
}

/// `QUIC_PARAM_CONN_FORCE_KEY_UPDATE` of `msquicp.h`, which the crate has no name for.
const FORCE_KEY_UPDATE: u32 = 0x8500_0000;

/// The longest wait for an event.
const POLL: Duration = Duration::from_millis(5);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
