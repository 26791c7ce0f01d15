//! FIPS 140.

/// Returns true if AWS-LC is its FIPS module.
pub(super) fn is_fips() -> bool {
    aws_lc_rs::try_fips_mode().is_ok()
}
