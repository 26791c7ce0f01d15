//! The public configuration, with default, unit and range of each value.

mod client;
mod endpoint;
mod path_memory;
mod reply_limits;
mod server;
mod transport;

pub use client::{ClientConfig, MemoryTokenStore, TokenStore};
pub use endpoint::EndpointConfig;
pub use path_memory::PathMemory;
pub use reply_limits::ReplyLimits;
pub use server::{RetryPolicy, ServerConfig};
pub(crate) use transport::SILENT_AFTER;
pub use transport::{ConfigError, TransportConfig};
