//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.

pub mod apps;
pub mod host;
pub mod link;
pub mod node;
pub mod packet;
pub mod report;
pub mod seed;
pub mod trace;
pub mod world;

pub use crate::world::World;
