//! The server. Its requests are answered on the threads of msquic.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use msquic::ffi::{
    QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, QUIC_PARAM_GLOBAL_VERSION_SETTINGS,
    QUIC_SEND_RESUMPTION_FLAGS_QUIC_SEND_RESUMPTION_FLAG_NONE,
};
use msquic::{
    Addr, Api, BufferRef, CertificateFile, Configuration, Connection, ConnectionEvent,
    ConnectionRef, Credential, CredentialConfig, Listener, ListenerEvent, Registration,
    RegistrationConfig, SendFlags, ServerResumptionLevel, Status, Stream, StreamEvent, StreamRef,
    StreamShutdownFlags,
};

use crate::keys::Secrets;
use crate::{PROTOCOL, Result, VERSION_1, VERSION_2, exchange, folder, set_versions, settings};

/// A handle that is to be closed.
enum Closed {
    Stream(Stream),
    Connection(Connection),
}

/// Values that the callbacks of all connections share.
#[derive(Clone)]
struct Shared {
    root: Arc<Path>,
    closed: Sender<Closed>,
}

pub(crate) fn serve(test: &str) -> Result {
    let registration = Registration::new(&RegistrationConfig::default())?;
    if test == "retry" {
        // Handshakes may use no memory without a validated address.
        let percent: u16 = 0;
        let parameter = QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT;
        // SAFETY: msquic copies the two bytes during the call.
        unsafe {
            Api::set_param(
                ptr::null_mut(),
                parameter,
                2,
                ptr::from_ref(&percent).cast(),
            )
        }?;
    }
    if test == "v2" {
        let versions = [VERSION_2, VERSION_1];
        let parameter = QUIC_PARAM_GLOBAL_VERSION_SETTINGS;
        set_versions(ptr::null_mut(), parameter, &versions, &versions)?;
    }
    let settings =
        settings(test).set_ServerResumptionLevel(ServerResumptionLevel::ResumeAndZerortt);
    let protocols = [BufferRef::from(PROTOCOL)];
    let configuration = Configuration::open(&registration, &protocols, Some(&settings))?;
    let certificates = folder("CERTS")?;
    let file = |name| certificates.join(name).to_string_lossy().into_owned();
    let identity = CertificateFile::new(file("priv.key"), file("cert.pem"));
    let credential = Credential::CertificateFile(identity);
    configuration.load_credential(&CredentialConfig::new().set_credential(credential))?;

    let (sender, closed) = channel();
    let shared = Shared {
        root: folder("WWW")?.into(),
        closed: sender,
    };
    let listener = Listener::open(&registration, move |_, event| {
        if let ListenerEvent::NewConnection { connection, .. } = event {
            accept(&connection, &configuration, &shared)?;
        }
        Ok(())
    })?;
    let address: SocketAddr = env::var("LISTEN")?.parse()?;
    listener.start(&protocols, Some(&Addr::from(address)))?;
    // A handle must not be closed in its own callback, which is freed with it.
    for handle in closed {
        match handle {
            Closed::Stream(stream) => drop(stream),
            Closed::Connection(connection) => drop(connection),
        }
    }
    Ok(())
}

fn accept(
    connection: &ConnectionRef,
    configuration: &Configuration,
    shared: &Shared,
) -> std::result::Result<(), Status> {
    // SAFETY: the handle is used during the callback only.
    let secrets = Secrets::collect(unsafe { connection.as_raw() })?;
    let shared = shared.clone();
    connection.set_callback_handler(move |connection, event| {
        on_event(&connection, &event, &secrets, &shared);
        Ok(())
    });
    connection.set_configuration(configuration)
}

fn on_event(
    connection: &ConnectionRef,
    event: &ConnectionEvent<'_>,
    secrets: &Secrets,
    shared: &Shared,
) {
    match event {
        ConnectionEvent::Connected { .. } => {
            secrets.log();
            send_ticket(connection);
        }
        ConnectionEvent::PeerStreamStarted { stream, .. } => {
            let (shared, mut request) = (shared.clone(), Vec::new());
            stream.set_callback_handler(move |stream, event| {
                on_stream_event(&stream, event, &mut request, &shared);
                Ok(())
            });
        }
        ConnectionEvent::ShutdownComplete { .. } => {
            // SAFETY: the server owns the connections that it accepted.
            let connection = unsafe { Connection::from_raw(connection.as_raw()) };
            let _ = shared.closed.send(Closed::Connection(connection));
        }
        _ => {}
    }
}

fn send_ticket(connection: &ConnectionRef) {
    let Some(send) = Api::get_ffi().ConnectionSendResumptionTicket else {
        return;
    };
    let flags = QUIC_SEND_RESUMPTION_FLAGS_QUIC_SEND_RESUMPTION_FLAG_NONE;
    // SAFETY: the handle is valid during the callback, and the ticket has no data of the application.
    unsafe { send(connection.as_raw(), flags, 0, ptr::null()) };
}

fn on_stream_event(
    stream: &StreamRef,
    event: StreamEvent<'_>,
    request: &mut Vec<u8>,
    shared: &Shared,
) {
    match event {
        StreamEvent::Receive { buffers, .. } if request.len() < MAX_REQUEST => {
            exchange::receive(request, buffers);
        }
        StreamEvent::PeerSendShutdown => {
            let sent = match requested_file(&shared.root, request) {
                Some(file) => exchange::send(stream, file, SendFlags::NONE),
                None => stream.shutdown(StreamShutdownFlags::ABORT, NOT_FOUND),
            };
            // The connection has ended, or the client does without the file.
            drop(sent);
        }
        StreamEvent::SendComplete { client_context, .. } => {
            // SAFETY: all data of the server's streams is sent with `exchange::send`.
            unsafe { exchange::on_send_complete(client_context) };
        }
        StreamEvent::ShutdownComplete { .. } => {
            // SAFETY: the server owns the streams of its clients.
            let stream = unsafe { Stream::from_raw(stream.as_raw()) };
            let _ = shared.closed.send(Closed::Stream(stream));
        }
        _ => {}
    }
}

fn requested_file(root: &Path, request: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(request).ok()?;
    let name = name.trim_end().strip_prefix("GET /")?;
    if name.contains('/') || name.starts_with('.') {
        return None;
    }
    fs::read(root.join(name)).ok()
}

/// The longest request.
const MAX_REQUEST: usize = 4096;

/// The code with which a stream is reset whose request names no file.
const NOT_FOUND: u64 = 404;
