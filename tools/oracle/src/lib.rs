//! Scripted clients and servers of HTTP/1.1, HTTP/2 and HTTP/3, for tests only.
//!
//! A test with an HTTP library at both ends cannot detect anything that the library joins, trims, tolerates or drops. Here
//! messages are lists of names and values in bytes, which keep their order, repetitions and case, and each protocol is written
//! and parsed by hand. The crate uses neither hyper, h2 and http nor the codecs of this project. QUIC is that of
//! `courser-quic`.
//!
//! - [`Wire`] is a TCP or TLS connection that runs a script of [`Step`]s and records every byte with its time.
//! - [`Client`] encodes a [`Request`] for one version, or sends raw bytes, and returns the response as [`Seen`].
//! - [`Upstream`] is a server of HTTP/1.1 or of HTTP/2 with prior knowledge. It records each request as [`Seen`] and responds as
//!   its [`Script`] says.
//! - [`Gateway`] is the server under test: a process, or a server in the process of the test.
//!
//! The text of [`Seen`] is canonical: two messages with the same meaning have the same text in all versions.

pub mod cases;
mod client;
mod gateway;
pub mod h1;
pub mod h2;
pub mod h3;
mod hpack;
mod lab;
mod message;
mod seen;
mod tables;
mod upstream;
mod wire;

pub use client::{Client, connect_tls};
pub use gateway::Gateway;
pub use lab::{Answered, Findings, Lab, Pair, Refusal};
pub use message::{
    Content, Ending, Field, Message, Request, RequestControl, Response, ResponseControl, Version,
    field,
};
pub use seen::{End, Framing, Seen};
pub use upstream::{Script, Upstream, UpstreamVersion, When};
pub use wire::{Record, Step, Wire};

use std::time::Duration;

/// The time after which a response counts as missing.
pub const PATIENCE: Duration = Duration::from_secs(5);
