//! The counters that a server sends to a client as JSON.

use courser_measure::{ConnectionCounters, IoCounters};
use serde::{Deserialize, Serialize};

/// The counters that a server reports. They cover all its clients since its start.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub(crate) struct ServerReport {
    /// The version of the server. It must be the first field: clients recognize a report by its beginning.
    pub(crate) courser: String,
    pub(crate) cpu_seconds: f64,
    pub(crate) io: IoCounters,
    /// The connection of the request; `None` over TCP.
    pub(crate) connection: Option<ConnectionCounters>,
    /// The version of datagram measurements that the server supports; 0 if it supports none.
    pub(crate) datagrams: u32,
}

impl ServerReport {
    /// Reads a report. Returns `None` if `bytes` is not one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Writing plain numbers and text cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::REPORT_START;

    #[test]
    fn report_is_read_as_written_and_recognized_by_its_start() {
        let report = ServerReport {
            courser: "0.1.0".to_owned(),
            cpu_seconds: 1.5,
            io: IoCounters {
                sent_datagrams: Some(3),
                ..IoCounters::default()
            },
            connection: Some(ConnectionCounters {
                connections: 1,
                ..Default::default()
            }),
            datagrams: 1,
        };
        let json = report.to_json();
        assert!(json.starts_with(REPORT_START));
        assert_eq!(ServerReport::parse(&json), Some(report));
    }

    #[test]
    fn unknown_and_missing_fields_of_other_versions_are_accepted() {
        let report = ServerReport::parse(b"{\"courser\":\"9\",\"new\":[1]}").expect("readable");
        assert_eq!((report.courser.as_str(), report.datagrams), ("9", 0));
        assert_eq!(ServerReport::parse(b"{\"courser\":"), None);
        assert_eq!(ServerReport::parse(b"cccc"), None);
    }
}
