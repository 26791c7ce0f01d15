//! Scripted clients and servers of HTTP/1.1, HTTP/2 and HTTP/3, for tests only.
//!
//! A test with an HTTP library at both ends cannot see what that library joins, trims, forgives or forgets. Here messages are
//! lists of pairs of bytes, in order, with their repetitions and their case, and each protocol is written and read by hand.
//! Nothing in this crate depends on hyper, h2, http or the codecs of this project; only QUIC itself is `courser-quic`.
//!
//! - [`Wire`] is a TCP or TLS connection that runs a script of [`Step`]s and records every byte with its time.
//! - [`Client`] spells a [`Request`] out for one version, or sends raw bytes, and reports what came back as [`Seen`].
//! - [`Upstream`] is a server over HTTP/1.1 or over HTTP/2 with prior knowledge. It records what arrived as [`Seen`] and answers
//!   with a [`Script`].
//! - [`Gateway`] is where the server under test listens: a process, or a server inside the test.
//!
//! The text of [`Seen`] is canonical: two messages that mean the same give the same text, whatever version carried them.

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

/// The time after which an answer that has not come counts as missing.
pub const PATIENCE: Duration = Duration::from_secs(5);
