//! Files over HTTP as a tower service.
//!
//! [`Files`] answers `GET` and `HEAD` with what is in a folder: types by name, ranges, conditional
//! requests, files that were compressed before, compression of what was not, redirects to folders, and
//! `index.html` in them.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use courser_files::Files;
//! use http::{Request, StatusCode};
//! use tower_service::Service;
//!
//! let mut files = Files::builder().compress(true).open(".")?;
//! let response = files.call(Request::get("/Cargo.toml").body(())?).await?;
//! assert_eq!(response.status(), StatusCode::OK);
//! # Ok(()) }
//! ```
//!
//! In an axum router it is a fallback or a nested service: `Router::new().fallback_service(files)`.
//!
//! # Where time goes
//!
//! A file that is asked for often is answered from memory, within a [budget](Builder::memory). What the
//! kernel has in memory is read where the request is handled. Only what would have to wait for a disk
//! goes to a thread (`RESOLVE_CACHED` and `RWF_NOWAIT` on Linux; other systems cannot tell, and always
//! take a thread).
//!
//! # What is served while files change
//!
//! - A file that was changed, replaced or removed is served in its old state for 10 ms at most. On Linux
//!   the kernel reports changes, and it is 1 ms; 5 s for the rare change that is not reported
//!   (writes through a shared mapping).
//! - A file that was changed within the last 20 ms is waited for until it was left alone for as long,
//!   100 ms at most: it may be half written.
//! - Content that is changed while it is sent ends the response with an error, so that no client
//!   takes a mixture of two states for a file. A file that only grows is sent as long as it was.
//!
//! # What is not served
//!
//! - Paths with `..`, a NUL, a backslash, or an invalid encoding: 404.
//! - Names that begin with a dot, `/.well-known` excepted (RFC 8615), unless [`Builder::dotfiles`]
//!   allows them: 404.
//! - What a symbolic link leads to outside of the folder, unless [`Builder::follow_symlinks`] allows it:
//!   404. On Linux the kernel makes sure of it (`openat2` with `RESOLVE_BENEATH`), also against
//!   somebody who changes links at the same time.
//! - Pipes, sockets and devices: 404.
//! - What the operating system denies: 403. When it is out of file descriptors: 503.

mod age;
mod answer;
mod asked;
mod body;
mod buffers;
mod builder;
mod coding;
mod compress;
mod conditions;
mod content;
mod disk;
mod find;
mod kind;
mod lately;
mod memory;
mod path;
mod representation;
mod respond;
mod root;
mod service;
mod stats;
mod trouble;
mod version;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "unwatched.rs"]
mod watch;

#[cfg(test)]
mod tests;

pub use self::body::{Body, BoxError};
pub use self::builder::{Builder, FolderHandler};
pub use self::service::{Answering, Files};
pub use self::stats::Stats;
