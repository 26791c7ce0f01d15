//! The sessions of one connection.

use std::sync::Arc;
use std::time::Instant;

use courser_base::{Mutex, Time};
use courser_http3_tokio::{Client, Datagrams, Extension};
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::runtime;
use courser_webtransport::{Peer, SessionId, Sessions};
use tokio::sync::Semaphore;

use crate::enable::{Enabled, NAME};
use crate::monitor::Monitor;

/// The table of the sessions of one connection. Streams and datagrams are assigned to their sessions by HTTP/3, so
/// that the table decides about requests only.
#[derive(Debug)]
pub(crate) struct Table {
    began: Instant,
    sessions: Mutex<Sessions>,
    /// Sessions that open a stream, by direction, one after the other.
    pub(crate) opening: [Semaphore; 2],
    /// The sessions of all connections.
    pub(crate) monitor: Monitor,
}

impl Table {
    /// Returns the group of extensions and the table of a connection, or `None` unless its configuration has
    /// [enabled](crate::enable) WebTransport.
    pub(crate) fn of(extension: &Extension) -> Option<(Extension, Arc<Self>)> {
        let group = extension.group(NAME)?;
        let Enabled { config, monitor } = group.value()?;
        let table = group.state(|| Self {
            began: runtime::now(),
            sessions: Mutex::new(Sessions::new(group.quic().side(), config.clone())),
            opening: [Semaphore::new(1), Semaphore::new(1)],
            monitor: monitor.clone(),
        })?;
        Some((group, table))
    }

    /// Returns the time since the table was created.
    pub(crate) fn now(&self) -> Time {
        let nanos = runtime::now()
            .saturating_duration_since(self.began)
            .as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the instant of a time.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.began + time.saturating_since(Time::ZERO)
    }

    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut Sessions) -> R) -> R {
        run(&mut self.sessions.hold())
    }

    /// Forgets a session that has ended.
    pub(crate) fn on_ended(&self, id: SessionId) {
        self.with(|sessions| sessions.on_ended(id));
    }

    /// Waits for the settings of a client. Returns false if the connection has ended.
    pub(crate) async fn on_client(&self, group: &Extension, datagrams: &Datagrams) -> bool {
        let Some(settings) = group.settings().await else {
            return false;
        };
        let h3_datagram = datagrams.negotiated().await;
        self.on_peer(group, &settings, h3_datagram, false)
    }

    /// Waits for the settings of a server. Returns false if the connection has ended.
    pub(crate) async fn on_server(&self, group: &Extension, client: &Client) -> bool {
        let Some(known) = client.settings().await else {
            return false;
        };
        let Some(settings) = group.settings().await else {
            return false;
        };
        let extended_connect = known.enable_connect_protocol;
        self.on_peer(group, &settings, known.h3_datagram, extended_connect)
    }

    fn on_peer(
        &self,
        group: &Extension,
        settings: &[(u64, u64)],
        h3_datagram: bool,
        extended_connect: bool,
    ) -> bool {
        let quic = group.quic();
        let peer = Peer {
            settings,
            h3_datagram,
            extended_connect,
            max_datagram_frame_size: quic.max_datagram_size().map_or(0, |size| size as u64),
            reset_stream_at: quic.accepts_reset_at(),
        };
        match self.with(|sessions| sessions.on_peer(&peer)) {
            Ok(()) => true,
            Err(error) => {
                group.fail(error.code, error.reason);
                false
            }
        }
    }
}
