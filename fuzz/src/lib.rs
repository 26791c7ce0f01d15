//! What each fuzz target does with its input, and what must hold whatever that is.
//!
//! Everything is a function of bytes, so that `seeds/` and what is made of it run as plain tests
//! too: `cargo test --release` in this folder. To search for more, with a nightly compiler and
//! cargo-fuzz:
//!
//! ```text
//! mkdir -p corpus/qpack_decoder
//! cargo +nightly fuzz run --features libfuzzer qpack_decoder corpus/qpack_decoder seeds/qpack_decoder
//! ```
//!
//! What it finds is shrunk by `cargo fuzz tmin` and kept in `seeds/` with the fix.

mod http3;
mod qpack;
mod wire;

pub use http3::{capsules, http3_frames, http3_message};
pub use qpack::{qpack_decoder, qpack_instructions};
pub use wire::{frames, header, transport_parameters};

/// All targets, by name.
pub const TARGETS: [(&str, fn(&[u8])); 8] = [
    ("header", header),
    ("frames", frames),
    ("transport_parameters", transport_parameters),
    ("qpack_decoder", qpack_decoder),
    ("qpack_instructions", qpack_instructions),
    ("http3_frames", http3_frames),
    ("http3_message", http3_message),
    ("capsules", capsules),
];

/// Cuts input into steps: a number that says what to do, and bytes to do it with.
///
/// A step is one byte for what, one for how many bytes, and these.
pub(crate) struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Steps<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[what, len], rest) = self.0.split_first_chunk()?;
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(len)));
        self.0 = rest;
        Some((what, bytes))
    }
}
