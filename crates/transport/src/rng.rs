//! The endpoint's only source of randomness: seeded once, handed around by reference.

pub use courser_crypto::rng::Rng;
