//! The contract of the QUIC interop runner (<https://interop.seemann.io>).
//!
//! The runner starts a server and a client, each with the name of a test in `TESTCASE`. [`Test`] is a
//! test that both ends of courser support; a program without support exits with [`UNSUPPORTED`].
//! [`serve`] and [`fetch`] are the two ends. Files travel over HTTP/0.9, and in the test `http3` over
//! HTTP/3.

mod client;
mod environment;
mod hq;
mod server;
mod test;

pub use self::client::{ClientPlan, fetch};
pub use self::environment::{client_plan, server_plan};
pub use self::server::{ServerPlan, serve};
pub use self::test::{Test, UNSUPPORTED};
