//! The limits of a server and how far each is used.

use courser::server::{Protocol, ServerHandle, ServerStats};
use courser_units::to_f64;
use serde_json::{Value, json};

/// A limit and its current use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LimitUsage {
    /// A description for humans, with the address if several listeners have the limit.
    pub(super) name: String,
    /// Its label in `docs/LIMITS.md`, or empty.
    pub(super) label: &'static str,
    pub(super) used: u64,
    pub(super) most: u64,
    pub(super) unit: &'static str,
}

impl LimitUsage {
    /// Returns the fraction in use, from 0 to 1, or slightly more if the limit was lowered or checked late.
    fn share(&self) -> f64 {
        match self.most {
            0 => 0.0,
            most => to_f64(self.used) / to_f64(most),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "label": self.label,
            "used": self.used,
            "most": self.most,
            "unit": self.unit,
            "share": self.share(),
        })
    }
}

/// Returns the limits of a server as JSON, sorted by the fraction in use, largest first.
pub(super) fn json(handle: &ServerHandle, stats: &ServerStats, own: [LimitUsage; 2]) -> Value {
    let mut limits = of_server(handle, stats);
    limits.extend(own);
    limits.extend(open_files());
    limits.sort_by(|one, other| other.share().total_cmp(&one.share()));
    Value::Array(limits.iter().map(LimitUsage::json).collect())
}

fn of_server(handle: &ServerHandle, stats: &ServerStats) -> Vec<LimitUsage> {
    let most = handle.limits().max_connections as u64;
    let mut limits = Vec::new();
    for listener in &stats.listeners {
        let address = listener.address;
        let Some(quic) = listener.quic else {
            continue;
        };
        limits.push(LimitUsage {
            name: format!("connections over QUIC at {address}"),
            label: "K55",
            used: quic.connections as u64,
            most,
            unit: "connections",
        });
        limits.push(LimitUsage {
            name: format!("memory of connections over QUIC at {address}"),
            label: "K81",
            used: quic.memory_used,
            most: quic.memory_budget,
            unit: "bytes",
        });
    }
    let of_tcp = [Protocol::Http1, Protocol::Http2];
    limits.push(LimitUsage {
        name: "connections over TCP".to_owned(),
        label: "K55",
        used: of_tcp.iter().map(|it| stats.of(*it).connections_open).sum(),
        most: most.saturating_mul(stats.listeners.len() as u64),
        unit: "connections",
    });
    limits.push(LimitUsage {
        name: "memory of connections over TCP and of requests in progress".to_owned(),
        label: "K115",
        used: stats.requests_memory + stats.tcp.memory,
        most: stats.requests_memory_limit,
        unit: "bytes",
    });
    limits
}

/// Returns the use of file descriptors of this process, if the system reports it.
fn open_files() -> Option<LimitUsage> {
    let most = reported_limit_of_files()?;
    let used = std::fs::metadata("/proc/self/fd").ok()?.len();
    // Before version 6.2, Linux reports a length of 0.
    (used > 0).then(|| LimitUsage {
        name: "open files".to_owned(),
        label: "",
        used,
        most,
        unit: "files",
    })
}

/// Returns the number of file descriptors that this process may open. Where the system does not report it, this is
/// 1024, which many systems allow.
pub fn open_files_limit() -> u64 {
    reported_limit_of_files().unwrap_or(1024)
}

fn reported_limit_of_files() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    soft_limit_of_files(&text)
}

/// Parses the soft limit from the text of `/proc/self/limits`.
fn soft_limit_of_files(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_files_is_the_soft_one() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             94000                94000                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(soft_limit_of_files(text), Some(1024));
        assert_eq!(
            soft_limit_of_files("Max open files unlimited unlimited files"),
            None
        );
        assert_eq!(soft_limit_of_files(""), None);
    }

    #[test]
    fn share_of_a_limit_of_zero_is_zero() {
        let near = LimitUsage {
            name: "none".to_owned(),
            label: "",
            used: 1,
            most: 0,
            unit: "files",
        };
        assert!(near.share().abs() < f64::EPSILON);
    }
}
