//! Bounds of settings that other parts use as well.

/// Largest UDP payload over IPv4.
pub(super) const MAX_MTU: u16 = 65_507;

/// Maximum of paths that are open at once (limit K276).
pub(crate) const MAX_OPEN_PATHS: u8 = 8;
