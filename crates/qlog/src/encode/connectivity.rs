//! Encodes events of connections and their paths: quic-events §4.

use std::net::{IpAddr, SocketAddr};

use courser_base::{FourTuple, ScopedIp};
use courser_telemetry::{
    CloseCause, ConnectionClosed, ConnectionIdUpdated, ConnectionStarted, MtuUpdated,
    PathFeatureUpdated, PathSilenceUpdated, PathUpdated, StateChanged,
};
use courser_wire::ConnectionId;

use super::events::Events;
use crate::json::Object;
use crate::schema::{self, Dialect};

pub(super) fn started(events: &mut Events<'_>, started: &ConnectionStarted) {
    let FourTuple { peer, local } = started.path;
    events.event("quic:connection_started", |data| {
        data.object("local", |end| {
            if let Some(local) = local {
                address(end, ScopedIp::in_zone_of(local, peer), None);
            }
            ids(end, &started.local_id);
        });
        data.object("remote", |end| {
            remote(end, peer);
            ids(end, &started.peer_id);
        });
    });
}

fn ids(end: &mut Object<'_>, id: &ConnectionId) {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    end.array("connection_ids", [hex], |out, hex| {
        out.push(b'"');
        out.extend_from_slice(hex.as_bytes());
        out.push(b'"');
    });
}

fn remote(end: &mut Object<'_>, peer: SocketAddr) {
    address(end, ScopedIp::of(peer), Some(peer.port()));
}

/// Writes an address, with its zone if it has one: `fe80::1%3`.
fn address(end: &mut Object<'_>, ip: ScopedIp, port: Option<u16>) {
    let (ip_key, port_key) = match ip.ip() {
        IpAddr::V4(_) => ("ip_v4", "port_v4"),
        IpAddr::V6(_) => ("ip_v6", "port_v6"),
    };
    end.text(ip_key, &ip.to_string());
    if let Some(port) = port {
        end.uint(port_key, u64::from(port));
    }
}

pub(super) fn closed(events: &mut Events<'_>, closed: &ConnectionClosed, dialect: Dialect) {
    events.event("quic:connection_closed", |data| {
        data.constant("initiator", schema::initiator(closed.by_peer));
        let trigger = match closed.cause {
            CloseCause::Transport { code } => {
                match dialect.transport_error(code) {
                    Some(name) => data.text("connection_error", &name),
                    None => data
                        .constant("connection_error", "unknown")
                        .uint("error_code", code.value()),
                };
                "error"
            }
            CloseCause::Application { code } => {
                data.constant("application_error", "unknown")
                    .uint("error_code", code.value());
                "application"
            }
            CloseCause::IdleTimeout => "idle_timeout",
            // The draft has no trigger for them; the reason has the details.
            CloseCause::HandshakeTimeout | CloseCause::PathSilent => "error",
            CloseCause::StatelessReset => "stateless_reset",
            CloseCause::VersionMismatch => "version_mismatch",
        };
        if !closed.reason.is_empty() {
            data.text("reason", &closed.reason);
        }
        data.constant("trigger", trigger);
    });
}

pub(super) fn id_updated(events: &mut Events<'_>, updated: &ConnectionIdUpdated) {
    events.event("quic:connection_id_updated", |data| {
        data.constant("initiator", schema::initiator(updated.of_peer));
        if let Some(old) = updated.old {
            data.hex("old", &old);
        }
        data.hex("new", &updated.new);
    });
}

pub(super) fn state_updated(events: &mut Events<'_>, changed: &StateChanged, dialect: Dialect) {
    events.event("quic:connection_state_updated", |data| {
        if let Some(old) = changed.old {
            data.constant("old", dialect.state(old));
        }
        data.constant("new", dialect.state(changed.state));
    });
}

/// `tuple` is the identifier that the path has in the trace.
pub(super) fn path_updated(events: &mut Events<'_>, updated: &PathUpdated, tuple: &str) {
    events.event("quic:migration_state_updated", |data| {
        data.constant("new", schema::path_state(updated.state))
            .text("tuple_id", tuple);
        ends(data, updated.path);
    });
}

/// Writes an event that the draft does not have.
pub(super) fn path_silence_updated(events: &mut Events<'_>, updated: &PathSilenceUpdated) {
    events.event("courser:path_silence_updated", |data| {
        data.boolean("silent", updated.is_silent)
            .uint("probe_timeouts", u64::from(updated.probe_timeouts));
    });
}

/// Writes the addresses of a path.
pub(super) fn ends(data: &mut Object<'_>, path: FourTuple) {
    let FourTuple { peer, local } = path;
    data.object("tuple_remote", |end| remote(end, peer));
    if let Some(local) = local {
        data.object("tuple_local", |end| {
            address(end, ScopedIp::in_zone_of(local, peer), None)
        });
    }
}

pub(super) fn mtu_updated(events: &mut Events<'_>, updated: &MtuUpdated) {
    events.event("quic:mtu_updated", |data| {
        data.uint("old", u64::from(updated.old))
            .uint("new", u64::from(updated.new))
            .boolean("done", updated.done);
    });
}

pub(super) fn path_feature_updated(events: &mut Events<'_>, updated: &PathFeatureUpdated) {
    events.event("courser:path_feature_updated", |data| {
        let state = if updated.is_used { "used" } else { "given_up" };
        data.constant("feature", schema::path_feature(updated.feature))
            .constant("new", state);
    });
}
