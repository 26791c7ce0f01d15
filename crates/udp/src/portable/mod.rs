//! The system calls of each platform, behind one `Socket` type with the same methods on all of
//! them.

mod address;
mod offload;
mod refusal;

#[cfg(not(target_os = "linux"))]
mod fallback;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use fallback::{Socket, has_only_connected, share_port, steer, unshare_port};
#[cfg(not(target_os = "linux"))]
pub use fallback::{clock_state, release_unused_memory};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Socket, adopt, has_only_connected, share_port, steer, unshare_port};
#[cfg(target_os = "linux")]
pub use linux::{clock_state, release_unused_memory};
