#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| courser_fuzz::qpack_decoder(bytes));
