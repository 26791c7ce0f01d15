//! Transfers over several links of the machine: the flags --via and --scheduler. RFC 10069.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use courser::client::ClientBuilder;
use courser::{
    Connection, PathId, PathInfo, PathPreference, PathSchedule, PathSchedulerChoice,
    TransportConfig, Via,
};
use serde_json::{Value, json};

use super::links::Link;
use super::verbose::Details;

/// Sets the link of the first path, and the number of paths.
pub(crate) fn settings(
    builder: ClientBuilder,
    links: &[Link],
    schedule: PathSchedule,
) -> ClientBuilder {
    let Some(first) = links.first() else {
        return builder;
    };
    let builder = match &first.via {
        Via::Address(ip) => builder.local_address(*ip),
        Via::Interface(name) => builder.interface(name),
    };
    builder.transport_config(TransportConfig {
        max_paths: u8::try_from(links.len()).unwrap_or(u8::MAX),
        path_scheduler: PathSchedulerChoice::Builtin(schedule),
        ..TransportConfig::default()
    })
}

/// The links of the paths that were opened, by path ID. Connections open theirs in the same order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Opened(Arc<Mutex<BTreeMap<PathId, Via>>>);

impl Opened {
    fn add(&self, path: PathId, via: &Via) {
        let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(path, via.clone());
    }

    fn of(&self, path: PathId) -> Option<Via> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(&path).cloned()
    }
}

/// Opens a path over each of the other links as soon as there is a connection.
pub(crate) fn opening(
    builder: ClientBuilder,
    links: &[Link],
    opened: &Opened,
    details: &Details,
) -> ClientBuilder {
    let Some((first, others)) = links.split_first() else {
        return builder;
    };
    opened.add(PathId::ZERO, &first.via);
    let is_backup = first.is_backup;
    let opened = opened.clone();
    let (others, details) = (others.to_vec(), details.clone());
    builder.on_quic_connection(move |connection| {
        if is_backup {
            prefer_others(connection.clone());
        }
        for link in others.clone() {
            let (opened, details) = (opened.clone(), details.clone());
            tokio::spawn(open(connection.clone(), link, opened, details));
        }
    })
}

/// Makes the first path the backup as soon as there is another one.
fn prefer_others(connection: Connection) {
    tokio::spawn(async move {
        if connection.authenticated().await.is_ok() {
            for path in connection.paths().iter().take(1) {
                // The connection is over.
                let _ = connection.set_path_preference(path.id, PathPreference::Backup);
            }
        }
    });
}

async fn open(connection: Connection, link: Link, opened: Opened, details: Details) {
    let Link { via, is_backup } = link;
    let began = Instant::now();
    let path = match connection.open_path_via(&via).await {
        Ok(path) => path,
        // Nothing is missing if the transfer was over first.
        Err(error) if error.connection_error().is_some() => return,
        Err(error) => {
            crate::output::note(format!("no path through {via}: {error}"));
            return;
        }
    };
    opened.add(path, &via);
    let use_of_it = match is_backup {
        true => " as a backup",
        false => "",
    };
    if is_backup {
        let _ = connection.set_path_preference(path, PathPreference::Backup);
    }
    let taken = began.elapsed().as_secs_f64() * 1e3;
    details.note(&format!(
        "Path {path} through {via} is open{use_of_it} ({taken:.1} ms)"
    ));
}

/// Returns what a path is used for: `data`, `backup`, `silent` while it does not answer, `opening` or `closing`.
fn state(path: &PathInfo) -> &'static str {
    match (path.is_closing, path.is_validated, path.is_suspect) {
        (true, ..) => "closing",
        (false, false, _) => "opening",
        (false, true, true) => "silent",
        _ if path.own_status == PathPreference::Backup => "backup",
        _ if path.peer_status == PathPreference::Backup => "backup",
        _ => "data",
    }
}

/// Describes the paths of a connection for --write-out and --json.
pub(crate) fn values(paths: &[PathInfo]) -> Value {
    let value = |path: &PathInfo| {
        let traffic = &path.traffic;
        json!({
            "id": path.id.value(),
            "local": path.addresses.local.map(|ip| ip.to_string()),
            "remote": path.addresses.peer.to_string(),
            "state": state(path),
            "bytes_sent": traffic.bytes_sent,
            "bytes_received": traffic.bytes_received,
            "packets_sent": path.packets_sent,
            "packets_lost": path.packets_lost,
            "rtt": path.stats.rtt.as_secs_f64(),
            "cwnd": path.stats.congestion_window,
            "mtu": path.stats.mtu,
        })
    };
    Value::Array(paths.iter().map(value).collect())
}

/// Returns the lines of --verbose about the paths of a connection, with the share of each of all bytes.
pub(crate) fn lines(paths: &[PathInfo], opened: &Opened) -> Vec<String> {
    let bytes = |path: &PathInfo| path.traffic.bytes_sent + path.traffic.bytes_received;
    let all: u64 = paths.iter().map(bytes).sum();
    let line = |path: &PathInfo| {
        let local = path.addresses.local.map(|ip| ip.to_string());
        let via = opened.of(path.id).map(|via| via.to_string());
        format!(
            "Path {} from {}: {}, {:.0} % of {}, {} packets lost, rtt {:.1} ms",
            path.id,
            via.or(local).as_deref().unwrap_or("any address"),
            state(path),
            bytes(path) as f64 * 100.0 / all.max(1) as f64,
            crate::output::size(all),
            path.packets_lost,
            path.stats.rtt.as_secs_f64() * 1e3,
        )
    };
    paths.iter().map(line).collect()
}
