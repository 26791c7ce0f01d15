//! File names in the paths of requests.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Converts the path of a request to that of a file or folder, relative to the root.
///
/// Returns `None` for paths that are not served:
/// - Paths that do not begin with exactly one slash. Two would make a redirect to a folder lead to
///   another host.
/// - Paths with an invalid percent-encoding, with text that is not UTF-8, or with a name that is
///   `.` or `..` or that contains a slash, a backslash or a NUL once it is decoded. Paths are
///   decoded once.
/// - Names that begin with a dot, unless `dotfiles` allows them. `/.well-known` (RFC 8615) is
///   always allowed.
pub(crate) fn relative(path: &str, dotfiles: bool) -> Option<PathBuf> {
    let path = path
        .strip_prefix('/')
        .filter(|path| !path.starts_with('/'))?;
    let mut relative = PathBuf::new();
    for (index, part) in path.split('/').enumerate() {
        let name = decode(part)?;
        // On Windows, a colon marks a drive or a hidden stream of a file.
        let is_odd = name.contains(['/', '\\', '\0'])
            || name == "."
            || name == ".."
            || (cfg!(windows) && name.contains(':'));
        if is_odd || (is_hidden(index, &name) && !dotfiles) {
            return None;
        }
        relative.push(&*name);
    }
    Some(relative)
}

/// Returns true for names that begin with a dot, except `.well-known` at the root.
pub(crate) fn is_hidden(index: usize, name: &str) -> bool {
    name.starts_with('.') && !(index == 0 && name == ".well-known")
}

/// Decodes percent-encoding. Returns `None` for text that is not UTF-8 and for a percent sign
/// without two hexadecimal digits.
fn decode(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let mut signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let is_valid = signs.all(|(at, _)| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)));
    if !is_valid {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_paths_are_refused() {
        for path in [
            "/..",
            "/a/../b",
            "/%2e%2e/etc",
            "/%2E%2e%2fetc",
            "/a%00",
            "/a%5cb",
            "//host",
            "/%",
            "/%2",
            "/%zz",
            "/%ff",
            "/.",
            "/a/./b",
            "*",
            "",
        ] {
            assert_eq!(relative(path, false), None, "{path}");
            assert_eq!(relative(path, true), None, "{path} with dotfiles");
        }
    }

    #[test]
    fn names_that_begin_with_a_dot_are_hidden() {
        assert_eq!(relative("/.git/config", false), None);
        assert_eq!(relative("/a/.env", false), None);
        assert_eq!(relative("/a/.well-known", false), None);
        assert!(relative("/.well-known/security.txt", false).is_some());
        assert_eq!(relative("/.git/config", true), Some(".git/config".into()));
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(relative("/a%20b/%C3%A9", false), Some("a b/é".into()));
        assert_eq!(relative("/a%2520b", false), Some("a%20b".into()));
    }

    proptest! {
        /// Every accepted path stays below the root, component by component.
        #[test]
        fn accepted_paths_stay_below_the_root(path in "/([a./%2eE\\\\c:\\x00-\\x7f]|%2[eEfF]|%5[cC]){0,12}") {
            for dotfiles in [false, true] {
                let Some(relative) = relative(&path, dotfiles) else { continue };
                let is_plain = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(relative.components().all(is_plain), "{path} is {relative:?}");
                prop_assert!(Path::new("/site").join(&relative).starts_with("/site"));
            }
        }
    }
}
