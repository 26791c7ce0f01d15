//! Public suffixes: domains under which anyone can register a name, from Mozilla's Public Suffix
//! List.
//!
//! The list is compiled to nested functions that are generic over an iterator, so the code is
//! generated in the calling crate. It used to be a fifth of the code of `courser-cli`. This
//! separate crate compiles in parallel with others and has an optimization level of its own.

/// Returns true if `domain` is a public suffix, such as `com`, `co.uk` or `github.io`. A name
/// without a dot that is not on the list counts as one too. `domain` is in lower case, with
/// internationalized names in ASCII form.
///
/// ```
/// assert!(courser_suffix::is_public("co.uk"));
/// assert!(!courser_suffix::is_public("example.co.uk"));
/// ```
pub fn is_public(domain: &str) -> bool {
    psl::suffix(domain.as_bytes()).is_some_and(|suffix| suffix == domain)
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn suffixes_open_to_registration_are_public() {
        for domain in ["com", "co.uk", "github.io", "intranet"] {
            assert!(is_public(domain), "{domain}");
        }
        for domain in ["example.com", "www.example.co.uk", "a.github.io", ""] {
            assert!(!is_public(domain), "{domain}");
        }
    }
}
