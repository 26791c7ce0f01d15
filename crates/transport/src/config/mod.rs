//! The public configuration, with default, unit and range of each value.

mod client;
mod endpoint;
mod path_memory;
mod reply_limits;
mod server;
mod token_hooks;
mod transport;

pub use client::{ClientConfig, InitialDestination, MemoryTokenStore, TokenStore};
pub use endpoint::EndpointConfig;
pub use path_memory::PathMemory;
pub use reply_limits::ReplyLimits;
#[cfg(test)]
pub(crate) use server::RETRY_LIFETIME;
pub(crate) use server::VALIDATION_LIFETIME;
pub use server::{RetryPolicy, ServerConfig};
pub use token_hooks::{TimeOfDay, TokenLog};
pub use transport::{ConfigError, PathSchedulerChoice, TransportConfig};
pub(crate) use transport::{MAX_OPEN_PATHS, SILENT_AFTER};
