//! Extracts file names from responses and URLs.

use http::HeaderMap;
use http::header::CONTENT_DISPOSITION;
use percent_encoding::percent_decode_str;

/// Returns the file name in a Content-Disposition field, without folders (RFC 6266 §4.3).
pub(crate) fn name_of(headers: &HeaderMap) -> Option<String> {
    let field = headers.get(CONTENT_DISPOSITION)?.to_str().ok()?;
    let mut found = None;
    for part in field.split(';').skip(1) {
        let Some((name, value)) = part.trim().split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match name.trim().to_ascii_lowercase().as_str() {
            "filename*" => {
                let coded = value.splitn(3, '\'').nth(2)?;
                return usable(&percent_decode_str(coded).decode_utf8_lossy());
            }
            "filename" => found = usable(value),
            _ => {}
        }
    }
    found
}

/// Returns the last segment of a URL's path that is not empty if it can be the name of a file.
pub(crate) fn file_name(path: &str) -> Option<&str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_usable = !last.is_empty() && last != "." && last != ".." && !is_special(last);
    is_usable.then_some(last)
}

/// Returns the last component of a name if it can be a visible file in a folder.
fn usable(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next()?;
    let is_usable = !last.is_empty()
        && !last.starts_with('.')
        && !last.contains(|c: char| c.is_control() || c == ':')
        && !is_special(last);
    is_usable.then(|| last.to_owned())
}

/// Returns true for names that do not denote files in a folder on this system, such as devices of Windows.
fn is_special(name: &str) -> bool {
    cfg!(windows) && is_special_on_windows(name)
}

/// Returns true for names that Windows interprets as a device, a drive, a stream of a file, or another file.
fn is_special_on_windows(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let is_device = DEVICES.iter().any(|device| match device.strip_suffix('#') {
        None => stem.eq_ignore_ascii_case(device),
        Some(device) => stem
            .strip_suffix(|c: char| c.is_ascii_digit() || "¹²³".contains(c))
            .is_some_and(|stem| stem.eq_ignore_ascii_case(device)),
    });
    is_device
        || name.ends_with(['.', ' '])
        || name.contains(|c: char| c.is_control() || "<>:\"/\\|?*".contains(c))
}

/// Returns true for the null device of Windows, also by the name that scripts written for curl use.
pub(crate) fn is_null_device(file: &str) -> bool {
    file == "/dev/null" || file.eq_ignore_ascii_case(NULL_DEVICE)
}

/// The name of the null device on Windows.
pub(crate) const NULL_DEVICE: &str = "NUL";

/// Names of devices on Windows; `#` stands for a digit.
const DEVICES: [&str; 8] = [
    "CON", "PRN", "AUX", "NUL", "COM#", "LPT#", "CONIN$", "CONOUT$",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(field: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_DISPOSITION, field.parse().expect("a value"));
        name_of(&headers)
    }

    #[test]
    fn names_of_servers_lose_their_folders() {
        assert_eq!(
            named("attachment; filename=\"a b.txt\"").as_deref(),
            Some("a b.txt")
        );
        assert_eq!(
            named("attachment; filename=../../etc/passwd").as_deref(),
            Some("passwd")
        );
        assert_eq!(
            named("attachment; filename=\"..\\\\x\"").as_deref(),
            Some("x")
        );
        assert_eq!(
            named("attachment; filename=x; filename*=UTF-8''%e2%82%ac").as_deref(),
            Some("€")
        );
        for field in [
            "attachment",
            "attachment; filename=..",
            "attachment; filename=.bashrc",
            "inline; filename=a/",
        ] {
            assert_eq!(named(field), None, "{field}");
        }
    }

    #[test]
    fn last_segment_of_a_path_is_a_name() {
        assert_eq!(file_name("/x/y"), Some("y"));
        assert_eq!(file_name("/x/"), Some("x"));
        for path in ["/", "/x//", "/x/.", "/x/.."] {
            assert_eq!(file_name(path), None, "{path}");
        }
    }

    #[test]
    fn special_names_of_windows_are_detected() {
        for name in [
            "C:x",
            "x:y",
            "..\\x",
            "a|b",
            "nul",
            "Con.txt",
            "com7",
            "LPT¹.log",
            "x.",
            "x ",
            "aux .h",
            "conin$",
        ] {
            assert!(is_special_on_windows(name), "{name}");
        }
        for name in [
            "x.txt",
            ".profile",
            "console",
            "com",
            "nul1",
            "a b",
            "communication3",
        ] {
            assert!(!is_special_on_windows(name), "{name}");
        }
        for (name, is_null) in [("/dev/null", true), ("Nul", true), ("null", false)] {
            assert_eq!(is_null_device(name), is_null, "{name}");
        }
    }
}
