//! What both directions of a link do, as data.

use std::time::Duration;

use super::link_spec::LinkSpec;
use super::nat::NatSpec;

/// What both directions of a link do.
///
/// As text: one [`LinkSpec`] for both, or two with a semicolon between: `20mbit,40ms;1mbit,40ms`.
/// The first may hold `rebind=5s`, see [`NatSpec`]. In TOML a string, the table of one
/// [`LinkSpec`] for both directions, or `{ forward = ..., back = ..., rebind = "5s" }`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DuplexSpec {
    /// From the client to the server.
    pub forward: LinkSpec,
    /// From the server to the client.
    pub back: LinkSpec,
    /// The address translator at the client's end.
    pub nat: Option<NatSpec>,
}

impl DuplexSpec {
    /// The same in both directions.
    pub fn symmetric(spec: LinkSpec) -> Self {
        Self {
            forward: spec.clone(),
            back: spec,
            nat: None,
        }
    }

    /// Time there and back on an empty link, the rates not counted.
    pub fn base_rtt(&self) -> Duration {
        self.forward.total_delay() + self.back.total_delay()
    }
}
