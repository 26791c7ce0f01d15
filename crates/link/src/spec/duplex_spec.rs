//! The specification of both directions of a link.

use std::time::Duration;

use super::link_spec::LinkSpec;
use super::nat::NatSpec;

/// The specification of both directions of a link.
///
/// As text, it is one [`LinkSpec`] for both directions, or two separated by a semicolon:
/// `20mbit,40ms;1mbit,40ms`. The first may contain `rebind=5s`, see [`NatSpec`]. In TOML it is a
/// string, the table of one [`LinkSpec`] for both directions, or
/// `{ forward = ..., back = ..., rebind = "5s" }`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DuplexSpec {
    /// The direction from the client to the server.
    pub forward: LinkSpec,
    /// The direction from the server to the client.
    pub back: LinkSpec,
    /// The address translator of the client; `None` for none.
    pub nat: Option<NatSpec>,
}

impl DuplexSpec {
    /// Creates a link with the same specification in both directions.
    pub fn symmetric(spec: LinkSpec) -> Self {
        Self {
            forward: spec.clone(),
            back: spec,
            nat: None,
        }
    }

    /// Returns the round-trip time of an empty link, without transmission times.
    pub fn base_rtt(&self) -> Duration {
        self.forward.total_delay() + self.back.total_delay()
    }
}
