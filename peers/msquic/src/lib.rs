//! msquic: its settings, a server, and the data of streams, for the peer program and for the end in
//! `courser interop matrix`.

pub mod exchange;
pub mod parameters;
pub mod server;
pub mod setup;
