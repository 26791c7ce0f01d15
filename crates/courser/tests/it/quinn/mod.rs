//! Tests of courser against quinn: each as client and as server, over real sockets in one process.

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
