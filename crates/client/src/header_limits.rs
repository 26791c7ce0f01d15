//! Limits of header sections of responses over TCP.

/// Size of the header section of a response (limit K382), as over HTTP/3 (limit K24).
pub(super) const MAX_HEADER_SIZE: u32 = 300 * 1024;
/// Number of fields of a response over HTTP/1.1 (limit K382), as over HTTP/3 (limit K24).
pub(super) const MAX_HEADERS: usize = 1024;
