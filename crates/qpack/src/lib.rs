//! QPACK (RFC 9204): field sections of HTTP/3 in few bytes.
//!
//! An [`Encoder`] turns field lines into sections and instructions for the other end's table, a
//! [`Decoder`] turns sections back. Neither knows HTTP/3 or a connection: bytes of the two
//! unidirectional streams and of the sections go in and out, stream IDs are only numbers.
//!
//! - Both keep a dynamic table as large as the other end and their own limit allow.
//! - No call copies what it can share: values of the tables come out as [`Text`] that says how
//!   long it lives.
//! - Memory is bounded by the capacity of the table, the number of streams that may block, and the
//!   size of the section at hand, all of them known to the caller.

mod blocked;
mod decoder;
mod decoder_stream;
mod dynamic_table;
mod encoder;
mod encoder_stream;
mod error;
mod field_line;
mod huffman;
mod insert_count;
mod prefix_int;
mod representation;
pub mod static_table;
mod string;

pub use decoder::{Decoder, DecoderLimits, Progress};
pub use encoder::{Encoder, EncoderLimits};
pub use error::Error;
pub use field_line::{DecodedLine, FieldLine, Origin, Text, line_size};
