//! The common parts of the runner and of the programs of this package. Those that programs of other packages share too are in
//! [`peers_common`], and appear here again.

pub mod descriptors;
pub mod http_client;
pub mod http_server;
pub mod installed;
pub mod web;

pub use peers_common::*;
