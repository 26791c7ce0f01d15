//! The limits of a server, and how much of each is in use.

use courser::server::{Protocol, ServerHandle, ServerStats};
use courser_units::to_f64;
use serde_json::{Value, json};

/// One limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Near {
    /// The limit in words, with the address where there are several.
    pub(super) name: String,
    /// Its row in `docs/LIMITS.md`, if it has one.
    pub(super) label: &'static str,
    pub(super) used: u64,
    pub(super) most: u64,
    pub(super) unit: &'static str,
}

impl Near {
    /// Returns the part in use, from 0 to 1 or a little more.
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

/// Returns the limits of a server, those first of which the largest part is in use.
pub(super) fn json(handle: &ServerHandle, stats: &ServerStats, own: [Near; 2]) -> Value {
    let mut limits = of_server(handle, stats);
    limits.extend(own);
    limits.extend(open_files());
    limits.sort_by(|one, other| other.share().total_cmp(&one.share()));
    Value::Array(limits.iter().map(Near::json).collect())
}

fn of_server(handle: &ServerHandle, stats: &ServerStats) -> Vec<Near> {
    let most = handle.limits().max_connections as u64;
    let mut limits = Vec::new();
    for listener in &stats.listeners {
        let address = listener.address;
        let Some(quic) = listener.quic else {
            continue;
        };
        limits.push(Near {
            name: format!("connections over QUIC at {address}"),
            label: "K55",
            used: quic.connections as u64,
            most,
            unit: "connections",
        });
        limits.push(Near {
            name: format!("memory of connections over QUIC at {address}"),
            label: "K81",
            used: quic.memory_used,
            most: quic.memory_budget,
            unit: "bytes",
        });
    }
    let of_tcp = [Protocol::Http1, Protocol::Http2];
    limits.push(Near {
        name: "connections over TCP".to_owned(),
        label: "K55",
        used: of_tcp.iter().map(|it| stats.of(*it).connections_open).sum(),
        most: most.saturating_mul(stats.listeners.len() as u64),
        unit: "connections",
    });
    limits.push(Near {
        name: "memory of requests in progress".to_owned(),
        label: "K115",
        used: stats.requests_memory,
        most: stats.requests_memory_limit,
        unit: "bytes",
    });
    limits
}

/// Returns the file descriptors of this process, where the system reports them.
fn open_files() -> Option<Near> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let most = soft_limit_of_files(&text)?;
    let used = std::fs::metadata("/proc/self/fd").ok()?.len();
    // Linux before 6.2 reports no number.
    (used > 0).then(|| Near {
        name: "open files".to_owned(),
        label: "",
        used,
        most,
        unit: "files",
    })
}

/// Finds the soft limit in the text of `/proc/self/limits`.
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
        let near = Near {
            name: "none".to_owned(),
            label: "",
            used: 1,
            most: 0,
            unit: "files",
        };
        assert!(near.share().abs() < f64::EPSILON);
    }
}
