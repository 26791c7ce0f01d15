//! Domains below which anybody can have a name, by Mozilla's Public Suffix List.
//!
//! The list is code: nested functions over any iterator, which the compiler makes where they are
//! called. They were a fifth of the code of `courser-cli`. Here they are compiled beside other crates,
//! and with a level of optimization of their own.

/// Returns true for `com`, `co.uk` and `github.io`, and for names without a dot that the list does not
/// have. `domain` is in lower case, internationalized names in the form of ASCII.
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
    fn names_that_anybody_can_have_one_below_are_public() {
        for domain in ["com", "co.uk", "github.io", "intranet"] {
            assert!(is_public(domain), "{domain}");
        }
        for domain in ["example.com", "www.example.co.uk", "a.github.io", ""] {
            assert!(!is_public(domain), "{domain}");
        }
    }
}
