//! QPACK (RFC 9204): field compression for HTTP/3.
//!
//! An [`Encoder`] turns field lines into field sections and into instructions for the peer's
//! dynamic table. A [`Decoder`] turns field sections back into field lines. Both are sans-IO and
//! independent of HTTP/3: they exchange the bytes of the encoder stream, the decoder stream and the
//! field sections with the caller, and treat stream IDs as plain numbers.
//!
//! - Each keeps a dynamic table as large as its own limit and the peer's allow.
//! - Strings are shared where possible. A decoded name or value is a [`Text`], whose variant states
//!   its lifetime.
//! - Memory is bounded by the capacity of the dynamic table, the number of blocked streams, and the
//!   size of the current field section. The caller controls all three.

mod blocked;
mod decoder;
mod decoder_stream;
mod dynamic_table;
mod encoder;
mod encoder_stream;
mod error;
mod field_line;
#[doc(hidden)]
pub mod hooks;
mod huffman;
mod insert_count;
mod prefix_int;
mod records;
mod representation;
pub mod static_table;
mod string;

pub use decoder::{Decoder, DecoderLimits, Progress};
pub use encoder::{Encoder, EncoderLimits};
pub use error::Error;
pub use field_line::{DecodedLine, FieldLine, Origin, Text, line_size};
