//! The argument of `--cookie`: cookies, or a file with cookies.

/// An argument of `--cookie`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CookieArgument<'a> {
    /// Cookies to send with every request.
    Pairs(&'a str),
    /// A file to read before the first transfer. An empty name only turns on the cookie engine.
    File(&'a str),
}

impl<'a> CookieArgument<'a> {
    /// Parses an argument as curl does: cookies contain `=`. A leading `@` marks a file name that contains `=`.
    pub(crate) fn of(text: &'a str) -> Self {
        match text.strip_prefix('@') {
            Some(name) => Self::File(name),
            None if text.contains('=') => Self::Pairs(text),
            None => Self::File(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_contain_an_equals_sign_and_files_do_not() {
        for (text, argument) in [
            ("a=b", CookieArgument::Pairs("a=b")),
            ("a=b; c=d", CookieArgument::Pairs("a=b; c=d")),
            ("jar.txt", CookieArgument::File("jar.txt")),
            ("@a=b.txt", CookieArgument::File("a=b.txt")),
            ("-", CookieArgument::File("-")),
            ("", CookieArgument::File("")),
        ] {
            assert_eq!(CookieArgument::of(text), argument, "{text}");
        }
    }
}
