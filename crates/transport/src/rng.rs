//! The endpoint's only source of randomness, seeded once and passed by reference.

pub use courser_crypto::rng::Rng;
