//! The contract of the QUIC interop runner (<https://interop.seemann.io>).
//!
//! The runner starts a server and a client, each with the name of a test in `TESTCASE`. [`Test`] is a
//! test that both ends of courser support; a program without support exits with [`UNSUPPORTED`].
//! [`serve`] and [`fetch`] are the two ends. Files travel over HTTP/0.9, and in the test `http3` over
//! HTTP/3.
//!
//! The cases of WebTransport have two ends of their own, [`run_server`] and [`run_client`].
//!
//! [`run_matrix`] runs the cases of the runner without containers: server and client are processes on
//! this machine, with an emulated link between them. The checks are those of the runner. They read the
//! datagrams that the link received, decrypted with the key log of either end.

mod capture;
mod case;
mod cell;
mod certificates;
mod check;
mod client;
mod environment;
mod folder;
mod hq;
mod matrix;
mod outcome;
mod peer;
mod process;
mod report;
mod server;
mod test;
mod trace;
mod webtransport;

pub use self::case::{CASES, Case, Check};
pub use self::client::{ClientPlan, fetch};
pub use self::environment::{client_plan, server_plan, session_client_plan, session_server_plan};
pub use self::matrix::{
    Cell, Implementation, Matrix, MatrixPlan, Pair, RunDone, Verdict, run as run_matrix,
};
pub use self::outcome::Outcome;
pub use self::peer::Peer;
pub use self::report::{Notes, ReportFormat};
pub use self::server::{ServerPlan, serve};
pub use self::test::{Test, UNSUPPORTED};
pub use self::webtransport::{
    SessionClientPlan, SessionServerPlan, SessionTest, Way, run_client, run_server,
};
