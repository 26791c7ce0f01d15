//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.

pub mod link;
pub mod node;
pub mod packet;
pub mod report;
