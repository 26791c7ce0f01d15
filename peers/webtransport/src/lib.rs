//! Sessions of WebTransport for the programs that measure them: one program for all libraries, and for each library what
//! differs.

pub mod own;
pub mod program;
pub mod session;
pub mod web_transport_quinn;
pub mod wtransport;
