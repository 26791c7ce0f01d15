//! Files over HTTP as a tower service.
//!
//! [`Files`] responds to `GET` and `HEAD` requests with the files of a folder. It supports content
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
//! Frequently requested files are served from memory, within a [budget](Builder::memory). Data in
//! the kernel's page cache is read on the thread of the request. Only reads that would wait for a
//! disk use another thread (`RESOLVE_CACHED` and `RWF_NOWAIT` on Linux; other systems cannot
//! distinguish these reads and always use another thread).
//!
//! These threads have a [maximum](Builder::threads), of which each client has a [share](Builder::client), so that one
//! client that requests files of a slow disk delays no other. Requests wait for a thread for a
//! [limited time](Builder::thread_wait).
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
//! # Paths
//!
//! Names are percent-decoded to bytes, once. Empty segments and `.` are skipped, and `..` removes the
//! segment before it, also where it is percent-encoded.
//!
//! # Paths that are not served
//!
//! - Paths with a `..` above the root, a NUL, an encoded slash, or an invalid percent-encoding: 404. On
//!   Windows, also names with a backslash or a colon, and names that are not UTF-8.
//! - Names that begin with a dot, except `/.well-known` (RFC 8615), unless [`Builder::dotfiles`]
//!   allows them: 404.
//! - Targets of symbolic links outside of the folder, unless [`Builder::follow_symlinks`] allows
//!   them: 404. On Linux the kernel enforces this (`openat2` with `RESOLVE_BENEATH`), even against
//!   processes that change links at the same time.
//! - Pipes, sockets and devices: 404.
//! - Files to which the operating system denies access: 403. If it is out of file descriptors, or if a request waits too
//!   long for a thread: 503 with `Retry-After`.

// Displays the feature that each item requires.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod age;
mod answer;
mod body;
mod buffers;
mod builder;
mod coding;
mod compress;
mod conditions;
mod content;
mod disk;
mod fair_shares;
mod file_request;
mod find;
mod folder;
#[doc(hidden)]
pub mod hooks;
mod kind;
mod memory;
mod multipart;
mod path;
mod range;
mod recent_files;
mod representation;
mod respond;
mod root;
mod serve_error;
mod service;
mod stats;
mod threads;
mod unavailable;
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
pub use self::folder::{Entries, Entry, Folder};
pub use self::service::{Answering, Files};
pub use self::stats::Stats;
pub use self::unavailable::Unavailable;
