//! Workloads, and what their figures are.

use std::fmt;
use std::str::FromStr;

use peers::command_line::Scenario;
use serde::{Serialize, Serializer};

/// The workload of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
    /// Handshakes, one after another.
    Handshake,
    /// Streams at the same time on one connection, which share the bytes of a transfer.
    Streams { count: u32, way: Way },
    /// Connections at the same time, which share the bytes of a transfer.
    Connections { count: u32, way: Way },
    /// Requests of one byte.
    Requests { in_flight: u32 },
    /// Requests of one byte, one after another, beside a transfer on the same connection.
    Latency { way: Way },
    /// Unreliable datagrams from client to server.
    Datagrams,
    /// Connections without traffic.
    Idle { connections: u32 },
    /// `GET`s of small responses; `in_flight` is over all connections.
    Http { in_flight: u32, connections: u32 },
    /// One `GET` of a large response.
    HttpDown,
    /// `GET`s of files, directly or through a proxy; `in_flight` is over all connections.
    Files {
        in_flight: u32,
        connections: u32,
        content: Content,
    },
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// The kind of the first figure of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Gbit/s.
    Goodput,
    /// Operations a second.
    Rate,
    /// Datagrams received a second.
    Datagrams,
    /// KiB of the server's resident memory for each connection.
    Memory,
    /// Microseconds of 99 of 100 requests.
    Latency,
}

impl Figure {
    /// The heading of its column.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Goodput => "Gbit/s",
            Self::Rate => "per second",
            Self::Datagrams => "received per second",
            Self::Memory => "KiB a connection",
            Self::Latency => "p99 us",
        }
    }

    /// The heading of ratios of it.
    pub(crate) const fn ratio(self) -> &'static str {
        match self {
            Self::Goodput | Self::Rate | Self::Datagrams => "speed [95 %]",
            Self::Memory => "memory [95 %]",
            Self::Latency => "p99 [95 %]",
        }
    }

    /// True when the CPU time is that of a GB, false when it is that of an operation.
    pub(crate) const fn is_of_bytes(self) -> bool {
        matches!(self, Self::Goodput | Self::Latency)
    }
}

/// Files that clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// One file, again and again.
    One,
    /// Files of a folder at random.
    Folder,
    /// Responses of a file's size, from an origin behind a proxy.
    Origin,
}

/// Workloads that the same programs can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Streams of the protocol `perf`.
    Perf,
    /// Responses made up by a server.
    Http,
    /// Files.
    Files,
    /// Requests that a proxy forwards.
    Proxy,
}

impl Workload {
    /// The peer programs' word for it.
    pub(crate) fn scenario(self) -> Scenario {
        match self {
            Self::Up
            | Self::Streams { way: Way::Up, .. }
            | Self::Connections { way: Way::Up, .. } => Scenario::Up,
            Self::Down
            | Self::Streams { way: Way::Down, .. }
            | Self::Connections { way: Way::Down, .. } => Scenario::Down,
            Self::Handshake => Scenario::Handshake,
            Self::Requests { .. } => Scenario::Rr,
            Self::Latency { way: Way::Up } => Scenario::LatencyUp,
            Self::Latency { way: Way::Down } => Scenario::LatencyDown,
            Self::Datagrams => Scenario::Datagrams,
            Self::Idle { .. } => Scenario::Idle,
            Self::Http { .. } | Self::HttpDown | Self::Files { .. } => Scenario::Http,
        }
    }

    /// Returns the kind of its first figure.
    pub(crate) fn figure(self) -> Figure {
        match self {
            Self::Up
            | Self::Down
            | Self::Streams { .. }
            | Self::Connections { .. }
            | Self::HttpDown => Figure::Goodput,
            Self::Handshake | Self::Requests { .. } | Self::Http { .. } | Self::Files { .. } => {
                Figure::Rate
            }
            Self::Latency { .. } => Figure::Latency,
            Self::Datagrams => Figure::Datagrams,
            Self::Idle { .. } => Figure::Memory,
        }
    }

    /// True when it is a transfer and nothing else.
    pub(crate) fn is_transfer(self) -> bool {
        self.figure() == Figure::Goodput
    }

    /// The family of programs that it takes.
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Http { .. } | Self::HttpDown => Family::Http,
            Self::Files {
                content: Content::Origin,
                ..
            } => Family::Proxy,
            Self::Files { .. } => Family::Files,
            _ => Family::Perf,
        }
    }

    /// Operations under way at once.
    pub(crate) fn in_flight(self) -> u32 {
        match self {
            Self::Requests { in_flight }
            | Self::Http { in_flight, .. }
            | Self::Files { in_flight, .. } => in_flight,
            Self::Streams { count, .. } => count,
            _ => 1,
        }
    }

    /// Connections at once.
    pub(crate) fn connections(self) -> u32 {
        match self {
            Self::Http { connections, .. }
            | Self::Files { connections, .. }
            | Self::Idle { connections } => connections,
            Self::Connections { count, .. } => count,
            _ => 1,
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let requests = text
            .strip_prefix("rr-")
            .and_then(|number| number.parse().ok());
        if let Some(http) = text.strip_prefix("http-") {
            return http_workload(http).ok_or_else(|| unknown(text));
        }
        for content in [Content::One, Content::Folder, Content::Origin] {
            let spread = text
                .strip_prefix(content.name())
                .and_then(|rest| rest.strip_prefix('-'));
            if let Some(spread) = spread {
                let (in_flight, connections) = parse_spread(spread).ok_or_else(|| unknown(text))?;
                return Ok(Self::Files {
                    in_flight,
                    connections,
                    content,
                });
            }
        }
        match (text, requests) {
            ("up", _) => Ok(Self::Up),
            ("down", _) => Ok(Self::Down),
            ("handshake", _) => Ok(Self::Handshake),
            ("latency-up", _) => Ok(Self::Latency { way: Way::Up }),
            ("latency-down", _) => Ok(Self::Latency { way: Way::Down }),
            ("datagrams", _) => Ok(Self::Datagrams),
            (_, Some(in_flight @ 1..=MAX_IN_FLIGHT)) => Ok(Self::Requests { in_flight }),
            _ => parallel_workload(text).ok_or_else(|| unknown(text)),
        }
    }
}

/// `streams-N-up`, `connections-N-up`, the same down, or `idle-N`.
fn parallel_workload(text: &str) -> Option<Workload> {
    let (name, rest) = text.split_once('-')?;
    if name == "idle" {
        let connections = rest.parse().ok()?;
        return (1..=MAX_IDLE)
            .contains(&connections)
            .then_some(Workload::Idle { connections });
    }
    let (count, way) = rest.split_once('-')?;
    let way = match way {
        "up" => Way::Up,
        "down" => Way::Down,
        _ => return None,
    };
    let count = count.parse().ok()?;
    match name {
        _ if !(1..=MAX_IN_FLIGHT).contains(&count) => None,
        "streams" => Some(Workload::Streams { count, way }),
        "connections" => Some(Workload::Connections { count, way }),
        _ => None,
    }
}

impl Content {
    /// Its name in workloads.
    const fn name(self) -> &'static str {
        match self {
            Self::One => "files",
            Self::Folder => "walk",
            Self::Origin => "proxy",
        }
    }
}

/// `N`, `NxC` with N a multiple of C, or `down`.
fn http_workload(text: &str) -> Option<Workload> {
    if text == "down" {
        return Some(Workload::HttpDown);
    }
    let (in_flight, connections) = parse_spread(text)?;
    Some(Workload::Http {
        in_flight,
        connections,
    })
}

/// `N`, or `NxC` with N a multiple of C.
fn parse_spread(text: &str) -> Option<(u32, u32)> {
    let (in_flight, connections) = text.split_once('x').unwrap_or((text, "1"));
    let (in_flight, connections): (u32, u32) = (in_flight.parse().ok()?, connections.parse().ok()?);
    let is_spread = connections > 0 && in_flight.is_multiple_of(connections);
    ((1..=MAX_IN_FLIGHT).contains(&in_flight) && is_spread).then_some((in_flight, connections))
}

fn unknown(text: &str) -> String {
    format!(
        "`{text}` is none of up, down, handshake, rr-1 to rr-{MAX_IN_FLIGHT}, streams-N-up, \
         streams-N-down, connections-N-up, connections-N-down with N as in rr, latency-up, \
         latency-down, datagrams, idle-1 to idle-{MAX_IDLE}, http-1 to \
         http-{MAX_IN_FLIGHT}, http-8x4 (8 over 4 connections, a multiple), http-down, files-N, \
         walk-N and proxy-N as http-N"
    )
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.pad("up"),
            Self::Down => f.pad("down"),
            Self::Handshake => f.pad("handshake"),
            Self::Streams { count, way } => f.pad(&format!("streams-{count}-{}", way.name())),
            Self::Connections { count, way } => {
                f.pad(&format!("connections-{count}-{}", way.name()))
            }
            Self::Latency { way } => f.pad(&format!("latency-{}", way.name())),
            Self::Datagrams => f.pad("datagrams"),
            Self::Idle { connections } => f.pad(&format!("idle-{connections}")),
            Self::Requests { in_flight } => f.pad(&format!("rr-{in_flight}")),
            Self::Http {
                in_flight,
                connections: 1,
            } => f.pad(&format!("http-{in_flight}")),
            Self::Http {
                in_flight,
                connections,
            } => f.pad(&format!("http-{in_flight}x{connections}")),
            Self::HttpDown => f.pad("http-down"),
            Self::Files {
                in_flight,
                connections: 1,
                content,
            } => f.pad(&format!("{}-{in_flight}", content.name())),
            Self::Files {
                in_flight,
                connections,
                content,
            } => f.pad(&format!("{}-{in_flight}x{connections}", content.name())),
        }
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A request is a connection in `rr` over TCP, and a file descriptor at either end.
const MAX_IN_FLIGHT: u32 = 10_000;

/// Below the ports that one address has for the clients' ends of TCP.
const MAX_IDLE: u32 = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_read_as_they_are_written() {
        for name in [
            "up",
            "down",
            "handshake",
            "rr-1",
            "rr-100",
            "streams-8-up",
            "streams-32-down",
            "connections-8-up",
            "connections-32-down",
            "latency-up",
            "latency-down",
            "datagrams",
            "idle-1000",
            "http-1",
            "http-8x4",
            "http-down",
            "files-1",
            "files-100x4",
            "walk-100x4",
            "proxy-1",
            "proxy-100x4",
        ] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn other_workloads_are_refused() {
        for name in [
            "",
            "rr",
            "rr-0",
            "rr-x",
            "rr-99999",
            "sideways",
            "streams-8",
            "streams-0-up",
            "streams-8-left",
            "connections--up",
            "connections-10001-up",
            "idle",
            "idle-0",
            "idle-50001",
            "latency",
            "http-",
            "http-0",
            "http-3x2",
            "http-4x0",
            "files",
            "files-down",
            "files-3x2",
            "walk-",
            "walker-1",
            "proxy-3x2",
        ] {
            assert!(name.parse::<Workload>().is_err(), "{name}");
        }
    }

    #[test]
    fn bytes_and_operations_are_told_apart() {
        let figure = |name: &str| name.parse::<Workload>().unwrap().figure();
        assert!(figure("streams-8-up").is_of_bytes() && figure("latency-down").is_of_bytes());
        assert!(!figure("idle-10").is_of_bytes() && !figure("datagrams").is_of_bytes());
        let latency: Workload = "latency-down".parse().unwrap();
        assert!(!latency.is_transfer());
    }
}
