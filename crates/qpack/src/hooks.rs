//! Internal parts for the server of courser, which reads the field blocks of HTTP/2 (RFC 7541).
//!
//! They are not part of the public API and may change at any time.

pub use crate::huffman::decode as decode_huffman;
