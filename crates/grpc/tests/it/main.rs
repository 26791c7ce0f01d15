//! Tests of channels and of the server's layer, over sockets on loopback.

#[path = "../interop/cases.rs"]
mod cases;
mod common;
mod deadlines;
mod failures;
mod interop;
#[path = "../interop/pb.rs"]
#[allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::unwrap_used,
    missing_docs,
    reason = "generated"
)]
mod pb;
mod roots;
mod server;
mod servers;
#[path = "../interop/service.rs"]
mod service;
