//! Scenarios: a link, flows on it, events, and bounds for the measures.
//!
//! A scenario is a TOML file:
//!
//! ```toml
//! name = "bulk-20mbit"
//! about = "one bulk flow on a plain link"
//! duration = "30s"
//! measure_from = "3s"
//! link = "20mbit,25ms,queue=1bdp"
//!
//! [transport]
//! mtu = 1452
//!
//! [[flow]]
//! controller = "cubic"
//!
//! [[event]]
//! at = "10s"
//! rate = "5mbit"
//!
//! [bounds]
//! goodput_share = ">=0.95"
//! queue_delay_p95 = "<1rtt"
//! ```
//!
//! Every flow has its own client and server. All of them share the link, with the grammar of
//! [`LinkSpec`](crate::link::LinkSpec) and [`DuplexSpec`](crate::link::DuplexSpec). Its direction `forward` leads from
//! clients to servers. Times have a unit, sizes may have one (`64k`, `1MiB`).
//!
//! | key of a flow | of kind | meaning |
//! |---|---|---|
//! | `name`, `controller`, `start` | all | `controller` is that of both ends |
//! | `count`, `spacing` | all | number of equal flows, and the time between their starts |
//! | `access` | all | a link between the client and the shared one |
//! | `kind` | | `bulk` (the default), `requests`, `ping`, `paced` |
//! | `way` | `bulk` | `up` (the default) or `down` |
//! | `bytes` or `end` | `bulk` | amount of data, or time of the end; without either, until the end of the run |
//! | `request`, `response` | `requests` | sizes in bytes, 512 and 4000 by default |
//! | `repeat`, `interval` | `requests`, `ping` | number of exchanges, and the time from one to the next |
//! | `size`, `interval`, `end` | `paced` | bytes per write of the client, time between writes, time of the end |
//!
//! An event has a time `at` and one or more of `rate`, `delay` (of both directions), `blackhole`
//! (its length), `rebind` (`port` or `address`), `key_update` and `close` (a flow's name). Changes
//! of the link can also be written in the link itself.
//!
//! A file may describe a family of scenarios: each `[[matrix]]` has variables with one value or a
//! list of values, and every combination replaces `{variable}` everywhere in the file.
//!
//! ```toml
//! name = "bulk-{rate}-{rtt}"
//! link = "{rate},rtt={rtt},queue=1bdp"
//!
//! [[matrix]]
//! rate = ["10mbit", "100mbit"]
//! rtt = ["10ms", "50ms"]
//! ```
//!
//! A bound applies to one of the [`MEASURES`](crate::report::MEASURES): to the median of the runs,
//! to all runs with `all` in front (the default for counts), or to a share of them: `">=0.95"`,
//! `"all <2ms"`, `"90% <=1.5rtt"`, `"==0"`. `rtt` is that of the empty link.

mod bounds;
mod definition;
mod error;
mod file;
mod flow;
mod marks;
mod matrix;
mod units;

pub use self::bounds::{Bound, BoundResult, BoundsFile, Quantifier};
pub use self::definition::{Action, ActionKind, Scenario};
pub use self::error::ScenarioError;
pub use self::flow::{Flow, Kind};

#[cfg(test)]
mod tests;
