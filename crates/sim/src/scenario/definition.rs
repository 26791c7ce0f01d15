//! Scenarios as data.

use std::time::Duration;

use courser_base::Time;
use courser_transport::TransportConfig;

use super::bounds::Bound;
use super::flow::Flow;
use crate::link::DuplexSpec;

/// A scenario as its file describes it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name, for reports and bounds.
    pub name: String,
    /// A description of one line, which may be empty.
    pub about: String,
    /// The duration of the run, which ends earlier if all flows have reached their ends.
    pub duration: Duration,
    /// The start of the measured time, which ends with the run.
    pub measured_from: Time,
    /// The link that all flows share, with all changes by events.
    pub link: DuplexSpec,
    /// The settings of all connections.
    pub transport: TransportConfig,
    /// The flows, one for each connection.
    pub flows: Vec<Flow>,
    /// The actions on connections, in the order of time.
    pub actions: Vec<Action>,
    /// The bounds of the measures.
    pub bounds: Vec<Bound>,
}

/// A scheduled action on connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// The time since the start of the world.
    pub at: Time,
    /// The name of the flow. The action applies to all its connections if it has a count.
    pub flow: String,
    /// The kind of the action.
    pub what: ActionKind,
}

/// An action on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActionKind {
    /// The client updates its keys.
    KeyUpdate,
    /// The client closes the connection.
    Close,
}

impl Scenario {
    /// Returns the round-trip time of the empty link, without access links.
    pub fn base_rtt(&self) -> Duration {
        self.link.base_rtt()
    }
}
