//! Files over HTTP as a tower service.
//!
//! [`Files`] answers `GET` and `HEAD` requests with the files of a folder. It supports content
//! types by name, ranges, conditional requests, precompressed files, compression of other files,
//! redirects to folders, and `index.html` in folders.
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
//! In an axum router, use it as a fallback or as a nested service:
//! `Router::new().fallback_service(files)`.
//!
//! # Performance
//!
//! Frequently requested files are answered from memory, within a [budget](Builder::memory). Data in
//! the kernel's page cache is read where the request is handled. Only reads that would wait for a
//! disk go to a thread (`RESOLVE_CACHED` and `RWF_NOWAIT` on Linux; other systems cannot
//! distinguish these reads and always use a thread).
//!
//! # Consistency while files change
//!
//! - After a file was changed, replaced or removed, its old state is served for at most 10 ms. On
//!   Linux the kernel reports changes, and it is 1 ms, or 5 s for the rare change that is not
//!   reported (writes through a shared mapping).
//! - A file that changed within the last 20 ms may be half written. Requests wait until it has not
//!   changed for 20 ms, but at most 100 ms.
//! - If content changes while it is sent, the response ends with an error, so that no client
//!   mistakes a mixture of two states for a file. A file that only grows is sent with its original
//!   length.
//!
//! # Paths that are not served
//!
//! - Paths with `..`, a NUL, a backslash, or an invalid encoding: 404.
//! - Names that begin with a dot, except `/.well-known` (RFC 8615), unless [`Builder::dotfiles`]
//!   allows them: 404.
//! - Targets of symbolic links outside of the folder, unless [`Builder::follow_symlinks`] allows
//!   them: 404. On Linux the kernel enforces this (`openat2` with `RESOLVE_BENEATH`), even against
//!   processes that change links at the same time.
//! - Pipes, sockets and devices: 404.
//! - Files to which the operating system denies access: 403. If it is out of file descriptors: 503.

// Shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

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
#[doc(hidden)]
pub mod hooks;
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
