//! courser against quinn: each as client and as server, over real sockets in one process.

#[path = "../common/mod.rs"]
mod common;

mod close;
mod datagrams;
mod handshake;
mod keys;
mod path;
mod setup;
mod stack;
mod streams;
mod tokens;
mod transfer;
