//! Network paths: addresses, validation, migration, and the anti-amplification limit.
//! RFC 9000 §8, §9.

pub mod amplification;
mod arrival;
mod attempts;
mod frames;
mod local;
mod migration;
mod moves;
pub mod network_path;
pub mod paths;
mod preferred;
pub(crate) mod spin;
pub mod validation;

pub(crate) use self::arrival::{AllowedMoves, Arrival};
pub use self::attempts::MigrationState;
pub(crate) use self::local::OwnPath;
pub use self::moves::NewPath;
pub use self::network_path::{MIN_DATAGRAM, Path, Place};
