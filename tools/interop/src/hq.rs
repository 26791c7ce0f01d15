//! HTTP/0.9 over QUIC: a request is a line with a path, and its response is the content of a file.

use std::path::{Component, Path, PathBuf};

/// The ALPN protocol of HTTP/0.9 over QUIC.
pub(crate) const ALPN: &str = "hq-interop";

/// The longest request that a server reads: K185.
pub(crate) const MAX_REQUEST: usize = 4096;

/// Returns the request for a path.
pub(crate) fn request(path: &str) -> Vec<u8> {
    format!("GET {path}\r\n").into_bytes()
}

/// Returns the file below `root` that a request names, or `None` if the request is malformed or leaves
/// the folder.
pub(crate) fn requested_file(root: &Path, request: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(request).ok()?;
    let path = text.trim_end_matches(['\r', '\n']).strip_prefix("GET /")?;
    let path = Path::new(path);
    let is_below = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_below && !path.as_os_str().is_empty()).then(|| root.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_names_its_file() {
        let file = requested_file(Path::new("/www"), &request("/deep/file"));
        assert_eq!(file, Some(PathBuf::from("/www/deep/file")));
    }

    #[test]
    fn requests_that_leave_the_folder_or_are_malformed_name_no_file() {
        let requests: [&[u8]; 7] = [
            b"GET /../secret\r\n",
            b"GET /a/../../secret\r\n",
            b"GET //etc/passwd\r\n",
            b"GET /\r\n",
            b"PUT /file\r\n",
            b"GET file\r\n",
            b"GET /\xff\r\n",
        ];
        for request in requests {
            let text = String::from_utf8_lossy(request);
            assert_eq!(requested_file(Path::new("/www"), request), None, "{text}");
        }
    }
}
