//! The client: one connection at a time.

use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use msquic::ffi::{HQUIC, QUIC_PARAM_CONN_RESUMPTION_TICKET, QUIC_PARAM_CONN_VERSION_SETTINGS};
use msquic::{
    AllowedCipherSuiteFlags, Configuration, Connection, ConnectionEvent, ConnectionShutdownFlags,
    CredentialConfig, CredentialFlags, Registration, SendFlags, Stream, StreamEvent,
    StreamOpenFlags, StreamStartFlags,
};
use peer_msquic::exchange::{self, Outgoing};
use peer_msquic::{parameters, setup};
use peers_common::interop::{self, Result, SERVER_NAME, Start};

use crate::keys::Secrets;
use crate::{PROTOCOL, VERSION_1, VERSION_2, Versions, settings};

pub(crate) fn fetch(settings: interop::Client) -> Result {
    let registration = setup::registration()?;
    let configuration = configuration(&registration, &settings.case)?;
    let client = Client {
        registration: &registration,
        configuration: &configuration,
        settings: &settings,
    };
    let mut ticket = None;
    for connection in settings.connections() {
        ticket = client.download(connection, ticket)?;
    }
    Ok(())
}

fn configuration(registration: &Registration, case: &str) -> Result<Configuration> {
    let settings = match case {
        // All requests leave before the first answer.
        "zerortt" => settings(case).set_InitialWindowPackets(40),
        _ => settings(case),
    };
    let configuration = setup::open(registration, PROTOCOL, &settings)?;
    let mut tls = CredentialConfig::new_client()
        .set_credential_flags(CredentialFlags::NO_CERTIFICATE_VALIDATION);
    if case == "chacha20" {
        tls = tls.set_allowed_cipher_suites(AllowedCipherSuiteFlags::CHACHA20_POLY1305_SHA256);
    }
    configuration.load_credential(&tls)?;
    Ok(configuration)
}

struct Client<'a> {
    registration: &'a Registration,
    configuration: &'a Configuration,
    settings: &'a interop::Client,
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
    /// Downloads files over one connection, waits for a ticket if the case needs one, and returns it.
    fn download(
        &self,
        over: interop::Connection<'_>,
        ticket: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let ticket = match over.start {
            Start::Full => None,
            Start::Resumed | Start::Early => Some(ticket.ok_or("the server sent no ticket")?),
        };
        let (sender, events) = channel();
        let connection = self.open(ticket.as_deref(), sender.clone())?;
        let is_early = over.start == Start::Early;
        let mut streams = Vec::new();
        for name in over.files {
            streams.push(request(&connection, name, is_early, sender.clone())?);
        }
        // The address is set, and the name goes into the ClientHello.
        let port = self.settings.server.port();
        connection.start(self.configuration, SERVER_NAME, port)?;
        let needs_ticket = self.settings.resumes() && over.start == Start::Full;
        let ticket = self.run(&connection, &events, over.files.len(), needs_ticket)?;
        connection.shutdown(ConnectionShutdownFlags::NONE, 0);
        while !matches!(events.recv()?, Event::Ended) {}
        drop(streams);
        Ok(ticket)
    }

    fn open(&self, ticket: Option<&[u8]>, events: Sender<Event>) -> Result<Connection> {
        let mut secrets = None;
        let (set_secrets, given) = channel::<Secrets>();
        let connection = Connection::open(self.registration, move |_, event| {
            if let Some(reason) = setup::reason(&event) {
                let _ = events.send(Event::Failed(reason));
                return Ok(());
            }
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
                ConnectionEvent::ShutdownComplete { .. } => Event::Ended,
                _ => return Ok(()),
            };
            let _ = events.send(event);
            Ok(())
        })?;
        // SAFETY: the connection is open, and closed after all uses.
        let handle = unsafe { connection.as_raw() };
        // The callback receives it.
        let _ = set_secrets.send(Secrets::collect(handle)?);
        setup::set_server(&connection, self.settings.server)?;
        if let Some(ticket) = ticket {
            let (bytes, length) = (ticket.as_ptr().cast(), ticket.len());
            let parameter = QUIC_PARAM_CONN_RESUMPTION_TICKET;
            // SAFETY: the connection is open, and the value has this length.
            unsafe { parameters::set_bytes(handle, parameter, bytes, length) }?;
        }
        if self.settings.case == "v2" {
            let versions = Versions {
                accepted: &[VERSION_2, VERSION_1],
                begun: &[VERSION_1, VERSION_2],
            };
            versions.set(handle, QUIC_PARAM_CONN_VERSION_SETTINGS)?;
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
        let mut ticket = None;
        let mut wants_update = false;
        let mut done_at: Option<Instant> = None;
        while missing > 0 || (needs_ticket && ticket.is_none()) {
            match events.recv_timeout(POLL) {
                Ok(Event::Began) => wants_update |= self.settings.case == "keyupdate",
                Ok(Event::File { name, content }) => {
                    self.settings.save(&name, &content)?;
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
    let request = interop::request(name);
    let (name, mut content) = (name.to_owned(), Vec::new());
    let mut outgoing = Outgoing::finished();
    let stream = Stream::open(connection, StreamOpenFlags::NONE, move |stream, event| {
        let event = match event {
            StreamEvent::Receive { buffers, .. } => {
                let is_first = content.is_empty();
                for buffer in buffers {
                    content.extend_from_slice(buffer.as_bytes());
                }
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
            // SAFETY: all data of the client's streams is sent by `exchange`.
            event => return unsafe { outgoing.on_event(&stream, &event) },
        };
        let _ = events.send(event);
        Ok(())
    })?;
    stream.start(StreamStartFlags::NONE)?;
    exchange::send_all(&stream, request.into(), flags)?;
    Ok(stream)
}

/// Begins a key update. Returns false before the handshake is confirmed.
fn update_keys(connection: HQUIC) -> bool {
    // SAFETY: the parameter has no value.
    unsafe { parameters::set_bytes(connection, FORCE_KEY_UPDATE, ptr::null(), 0) }.is_ok()
}

/// `QUIC_PARAM_CONN_FORCE_KEY_UPDATE` of `msquicp.h`, which the crate has no name for.
const FORCE_KEY_UPDATE: u32 = 0x8500_0000;

/// The longest wait for an event.
const POLL: Duration = Duration::from_millis(5);

/// The time that a server has to send a ticket after the files.
const PATIENCE: Duration = Duration::from_secs(2);
