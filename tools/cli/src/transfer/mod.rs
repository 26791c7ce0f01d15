//! The parts of a transfer around its request, independent of flags and exit codes.
//!
//! - [`Destination`] says where a body is written: standard output, a file, or a file that the server names.
//!   [`Destination::open`] returns a [`Sink`].
//! - [`has_rest`] checks that a response continues a download, and [`Backoff`] computes the delays between
//!   attempts.
//! - [`expand_url`] returns the URLs of a pattern with braces and brackets.
//! - [`steps`] divides the time of a transfer into steps that add up to it.
//!
//! Servers can choose neither folders nor existing files: a name in a Content-Disposition field is reduced to
//! its last component, hidden files and special names of the system are rejected, and the file must not
//! exist.

mod destination;
mod early_data;
mod file_name;
mod percent;
mod rest;
mod retry;
mod steps;
mod tls_notes;
mod url_pattern;

pub(crate) use self::destination::{Destination, Sink, SinkError};
pub(crate) use self::early_data::prepare_early_data;
pub(crate) use self::file_name::file_name;

pub(crate) use self::percent::{percent_decode, percent_encode};
pub(crate) use self::rest::{RestError, has_rest};
pub(crate) use self::retry::{Backoff, is_transient, retry_after};
pub(crate) use self::steps::{Step, TransferTimes, steps};
pub(crate) use self::tls_notes::tls_notes;
pub(crate) use self::url_pattern::{ExpandedUrl, expand_url};
