//! A network in memory: hosts, links made of stacked effects, virtual time, one seed.

pub mod identity;
pub mod link;
pub mod machine;
pub mod node;
pub mod packet;
