//! The choice of a controller of courser.

use courser_quic::Algorithm;

/// A controller of courser with its settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builtin {
    pub(crate) algorithm: Algorithm,
    /// The first window in bytes, if the program has set one.
    pub(crate) initial_window: Option<u64>,
}
