//! The targets of spans and events, by which subscribers filter.

pub(super) const CONNECTION: &str = "courser::connection";
pub(super) const PATH: &str = "courser::path";
pub(super) const STREAM: &str = "courser::stream";
pub(super) const RECOVERY: &str = "courser::recovery";
pub(super) const PACKET: &str = "courser::packet";
