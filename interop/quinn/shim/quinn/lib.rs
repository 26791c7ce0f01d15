//! courser under the name and version of quinn.
pub use quinn_api::*;
