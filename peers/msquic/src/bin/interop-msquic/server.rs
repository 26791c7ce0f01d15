//! The server.

use std::ptr;
use std::sync::Arc;

use msquic::ffi::{
    QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, QUIC_PARAM_GLOBAL_VERSION_SETTINGS,
    QUIC_SEND_RESUMPTION_FLAGS_QUIC_SEND_RESUMPTION_FLAG_NONE,
};
use msquic::{Api, BufferRef, ConnectionEvent, ConnectionRef, ServerResumptionLevel};
use peer_msquic::exchange::Outgoing;
use peer_msquic::server::{Accepted, Request, Server};
use peer_msquic::{parameters, setup};
use peers_common::interop::{self, Result};

use crate::keys::Secrets;
use crate::{PROTOCOL, VERSION_1, VERSION_2, Versions, settings};

pub(crate) fn serve(server: interop::Server) -> Result {
    let registration = setup::registration()?;
    if server.case == "retry" {
        // Handshakes may use no memory without a validated address.
        let percent: u16 = 0;
        // SAFETY: this is the type that msquic expects.
        unsafe { parameters::set_global(QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT, &percent) }?;
    }
    if server.case == "v2" {
        let versions = Versions {
            accepted: &[VERSION_2, VERSION_1],
            begun: &[VERSION_2, VERSION_1],
        };
        versions.set(ptr::null_mut(), QUIC_PARAM_GLOBAL_VERSION_SETTINGS)?;
    }
    let settings =
        settings(&server.case).set_ServerResumptionLevel(ServerResumptionLevel::ResumeAndZerortt);
    let configuration = setup::open(&registration, PROTOCOL, &settings)?;
    configuration.load_credential(&setup::server_tls(&server.certificate, &server.key))?;
    let (listen, server) = (server.listen, Arc::new(server));
    let accept = move |connection: &ConnectionRef| {
        Ok(Serving {
            // SAFETY: the handle is used during the callback only.
            secrets: Secrets::collect(unsafe { connection.as_raw() })?,
            server: server.clone(),
        })
    };
    Server::start(registration, configuration, PROTOCOL, listen, accept)?.run();
    Ok(())
}

/// A connection that was accepted.
struct Serving {
    server: Arc<interop::Server>,
    secrets: Secrets,
}

impl Accepted for Serving {
    type Request = FileRequest;

    fn on_event(&mut self, connection: &ConnectionRef, event: &ConnectionEvent<'_>) {
        if let ConnectionEvent::Connected { .. } = event {
            self.secrets.log();
            send_ticket(connection);
        }
    }

    fn on_stream(&mut self) -> FileRequest {
        FileRequest {
            server: self.server.clone(),
            received: Vec::new(),
        }
    }
}

/// A request for a file.
struct FileRequest {
    server: Arc<interop::Server>,
    received: Vec<u8>,
}

impl Request for FileRequest {
    fn receive(&mut self, buffers: &[BufferRef]) {
        if self.received.len() < MAX_REQUEST {
            for buffer in buffers {
                self.received.extend_from_slice(buffer.as_bytes());
            }
        }
    }

    fn answer(&mut self) -> Option<Outgoing> {
        let file = self.server.answer(&self.received)?;
        Some(Outgoing::content(file.into()))
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

/// The longest request.
const MAX_REQUEST: usize = 4096;
