//! Features that a build can omit, because they take long to compile.

/// Returns the error for a flag whose feature is missing.
pub(crate) fn missing(part: &str, feature: &str) -> String {
    format!("built without {part}: build courser with --features {feature} (or full)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_part_the_feature_and_the_flag() {
        assert_eq!(
            missing("ACME", "acme"),
            "built without ACME: build courser with --features acme (or full)"
        );
    }

    #[test]
    fn tests_are_built_with_all_features() {
        let all = [
            cfg!(feature = "acme"),
            cfg!(feature = "brotli"),
            cfg!(feature = "certificate-brotli"),
            cfg!(feature = "certificate-compression"),
            cfg!(feature = "dns"),
            cfg!(feature = "rand-regex"),
            cfg!(feature = "zstd"),
        ];
        assert_eq!(all, [true; 7]);
    }
}
