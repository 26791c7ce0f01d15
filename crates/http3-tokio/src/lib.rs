//! HTTP/3 (RFC 9114) on a QUIC connection, with the common types of Rust.
//!
//! Programs use this crate as `courser::h3`, whose documentation describes it.

mod abandoned;
mod admission;
mod arrivals;
mod body;
mod capsules;
mod claimed;
mod client;
mod datagrams;
mod date;
mod driver;
mod early_data;
mod error;
mod executor;
mod extension;
mod failure;
mod first_poll;
mod handover;
#[doc(hidden)]
pub mod hooks;
mod http_service;
mod incoming;
mod interim;
mod lingering;
mod on_interim;
mod origins;
mod outgoing;
mod priority;
mod records;
mod respond;
mod serve;
mod server;
mod service;
mod session_streams;
mod settings;
mod shared;
mod unresolved;
mod upgrade;
mod upload_guard;
mod waiting;

pub use courser_http3::{
    Capsule, ClaimError, Code, Config, ConfigError, Extensions, FieldLimits, FrameStream, Priority,
    Protocol, SessionCodes, Settings,
};

pub use self::body::{Body, Empty};
pub use self::capsules::{CapsuleReceiver, CapsuleSender, Capsules, CapsulesWait, Received};
pub use self::claimed::{ClaimedReceive, ClaimedStream, ExtensionFrame};
pub use self::client::Client;
pub use self::datagrams::{DatagramError, Datagrams};
pub use self::early_data::EarlyData;
pub use self::error::Error;
pub use self::extension::{Extension, LeadingFrames};
pub use self::failure::Origin;
pub use self::http_service::HttpService;
pub use self::interim::{Interim, InterimError, InterimOutcome};
pub use self::on_interim::OnInterim;
pub use self::respond::Respond;
pub use self::serve::{Serve, serve};
pub use self::server::ServerConnection;
pub use self::session_streams::SessionStreams;
pub use self::unresolved::Unresolved;
pub use self::upgrade::{OnUpgrade, Upgraded, upgrade};

/// The ALPN protocol name of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &str = "h3";
