//! File names in the paths of requests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// The path of a request as that of a file or folder below the root.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Requested {
    pub(crate) relative: PathBuf,
    /// True for a path that ends with a slash, and so names a folder.
    pub(crate) is_folder: bool,
    /// False if another path names the same file in fewer segments. Such paths are not cached, because
    /// there is any number of them.
    pub(crate) is_normal: bool,
}

/// Converts the path of a request to that of a file or folder, relative to the root.
///
/// Empty segments and `.` are skipped, and `..` removes the segment before it, as in RFC 3986 §5.2.4. The
/// result depends on the text alone and is opened below the root, so that it cannot name anything outside.
///
/// Returns `None` for paths that are not served:
/// - Paths that do not begin with a slash, and paths with a `..` that leads above the root.
/// - Paths with an invalid percent-encoding or with a name that cannot be that of a file: one that
///   contains a slash or a NUL once it is decoded. Paths are decoded once. On Windows, names with a
///   backslash or a colon and names that are not UTF-8 are not served either.
/// - Names that begin with a dot, unless `dotfiles` allows them. `/.well-known` (RFC 8615) is
///   always allowed.
pub(crate) fn parse(path: &str, dotfiles: bool) -> Option<Requested> {
    let segments = path.strip_prefix('/')?.split('/');
    let mut relative = PathBuf::new();
    let mut is_folder = false;
    let mut is_normal = true;
    let mut depth = 0;
    for segment in segments {
        // An empty segment at the end is the mark of a folder.
        is_normal &= !is_folder;
        let name = decode(segment)?;
        match &*name {
            b"" => is_folder = true,
            b"." => (is_folder, is_normal) = (true, false),
            b".." => {
                if !relative.pop() {
                    return None;
                }
                depth -= 1;
                (is_folder, is_normal) = (true, false);
            }
            name => {
                if is_hidden(depth, name) && !dotfiles {
                    return None;
                }
                relative.push(file_name(name)?);
                depth += 1;
                is_folder = false;
            }
        }
    }
    Some(Requested {
        relative,
        is_folder,
        is_normal,
    })
}

/// Returns true for names that begin with a dot, except `.well-known` at the root.
pub(crate) fn is_hidden(depth: usize, name: &[u8]) -> bool {
    name.starts_with(b".") && !(depth == 0 && name == b".well-known")
}

/// Returns the URL of a file or folder relative to the root.
pub(crate) fn to_url(relative: &Path) -> String {
    let names = relative.iter().map(name_to_url);
    names.collect::<Vec<_>>().join("/")
}

/// Percent-encodes all bytes of a name but those of unreserved characters (RFC 3986 §2.3).
pub(crate) fn name_to_url(name: &OsStr) -> String {
    percent_encode(name.as_encoded_bytes(), &RESERVED).to_string()
}

const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the file name with these bytes, which are neither empty nor `.` or `..`.
#[cfg(unix)]
fn file_name(name: &[u8]) -> Option<&OsStr> {
    let is_valid = !name.contains(&b'/') && !name.contains(&b'\0');
    is_valid.then(|| std::os::unix::ffi::OsStrExt::from_bytes(name))
}

/// Returns the file name with these bytes, which are neither empty nor `.` or `..`.
#[cfg(not(unix))]
fn file_name(name: &[u8]) -> Option<&OsStr> {
    let name = std::str::from_utf8(name).ok()?;
    // On Windows, a colon marks a drive or a hidden stream of a file.
    let is_valid = !name.contains(['/', '\\', '\0', ':']);
    is_valid.then_some(OsStr::new(name))
}

/// Decodes percent-encoding. Returns `None` for a percent sign without two hexadecimal digits.
fn decode(text: &str) -> Option<std::borrow::Cow<'_, [u8]>> {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    let mut signs = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let is_valid = signs.all(|(at, _)| is_hex(bytes.get(at + 1)) && is_hex(bytes.get(at + 2)));
    is_valid.then(|| percent_decode(bytes).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn relative(path: &str, dotfiles: bool) -> Option<PathBuf> {
        Some(parse(path, dotfiles)?.relative)
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in [
            "/..",
            "/a/../..",
            "/a/../../a",
            "/./..",
            "//..",
            "/%2e%2e/etc",
            "/%2E%2e%2fetc",
            "/a%00",
            "/a%2fb",
            "/%",
            "/%2",
            "/%zz",
            "*",
            "",
            "a",
        ] {
            assert_eq!(parse(path, false), None, "{path}");
            assert_eq!(parse(path, true), None, "{path} with dotfiles");
        }
    }

    #[test]
    fn dot_segments_and_empty_segments_are_removed() {
        for (path, expected, is_folder, is_normal) in [
            ("/", "", true, true),
            ("/a", "a", false, true),
            ("/a/", "a", true, true),
            ("/a/b", "a/b", false, true),
            ("//a", "a", false, false),
            ("//", "", true, false),
            ("/a//b", "a/b", false, false),
            ("/a//", "a", true, false),
            ("/./a", "a", false, false),
            ("/a/.", "a", true, false),
            ("/.", "", true, false),
            ("/a/./b", "a/b", false, false),
            ("/a/../b", "b", false, false),
            ("/a/b/..", "a", true, false),
            ("/a/..", "", true, false),
            ("/a/%2e%2E/b", "b", false, false),
            ("/a/b/../../c/", "c", true, false),
        ] {
            let expected = Requested {
                relative: expected.into(),
                is_folder,
                is_normal,
            };
            assert_eq!(parse(path, false), Some(expected), "{path}");
        }
    }

    #[test]
    fn names_that_begin_with_a_dot_are_hidden() {
        assert_eq!(relative("/.git/config", false), None);
        assert_eq!(relative("/.git/../a", false), None);
        assert_eq!(relative("/a/.env", false), None);
        assert_eq!(relative("/a/.well-known", false), None);
        assert_eq!(relative("/...", false), None);
        assert!(relative("/.well-known/security.txt", false).is_some());
        assert!(relative("/a/../.well-known/security.txt", false).is_some());
        assert_eq!(relative("/.git/config", true), Some(".git/config".into()));
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(relative("/a%20b/%C3%A9", false), Some("a b/é".into()));
        assert_eq!(relative("/a%2520b", false), Some("a%20b".into()));
        assert_eq!(relative("/%252e%252e", false), Some("%2e%2e".into()));
    }

    #[cfg(unix)]
    #[test]
    fn names_are_bytes() {
        use std::os::unix::ffi::OsStrExt as _;
        let bytes = |path| relative(path, false).map(|path| path.as_os_str().as_bytes().to_owned());
        assert_eq!(bytes("/%ff%FE"), Some(b"\xff\xfe".to_vec()));
        assert_eq!(bytes("/a%5cb"), Some(b"a\\b".to_vec()));
        assert_eq!(bytes("/..%5c..%5cb"), None, "it begins with a dot");
        assert_eq!(bytes("/a%5c..%5cb"), Some(b"a\\..\\b".to_vec()));
    }

    #[cfg(unix)]
    #[test]
    fn urls_of_files_lead_back_to_them() {
        for path in [
            "/a",
            "/a/b%20c",
            "/%5C%5Cexample.org",
            "/%FF",
            "/a%3Fb%23c%25",
        ] {
            let relative = relative(path, false).expect("a name");
            assert_eq!(format!("/{}", to_url(&relative)), path);
        }
    }

    proptest! {
        /// Every accepted path stays below the root, component by component.
        #[test]
        fn accepted_paths_stay_below_the_root(path in "/([a./%2eE\\\\c:\\x00-\\x7f]|%2[eEfF]|%5[cC]|\\.\\./){0,12}") {
            for dotfiles in [false, true] {
                let Some(relative) = relative(&path, dotfiles) else { continue };
                let is_plain = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(relative.components().all(is_plain), "{path} is {relative:?}");
                prop_assert!(Path::new("/site").join(&relative).starts_with("/site"));
                // The URL of the result is normal, and names the same file.
                if !relative.as_os_str().is_empty() {
                    let again = parse(&format!("/{}", to_url(&relative)), dotfiles);
                    let again = again.expect("accepted again");
                    prop_assert_eq!(again.relative, relative);
                    prop_assert!(again.is_normal);
                }
            }
        }
    }
}
