//! Network paths: addresses, validation, migration, and the limit on what an unproven address gets.
//! RFC 9000 §8, §9.

pub mod amplification;
mod frames;
mod migration;
pub mod network_path;
pub mod paths;
pub mod validation;

pub use self::network_path::{MIN_DATAGRAM, Path};
