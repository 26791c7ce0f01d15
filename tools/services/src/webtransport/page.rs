//! The files of the test page.

use http::{HeaderValue, Response, StatusCode, header};

use crate::body::{Body, typed};

/// A file of the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct File(usize);

impl File {
    /// Returns the file with this name below the path of the page.
    pub(super) fn named(name: &str) -> Option<Self> {
        FILES.iter().position(|(it, _, _)| *it == name).map(Self)
    }

    pub(super) fn response(self) -> Response<Body> {
        let (_, kind, text) = FILES[self.0];
        let mut response = typed(StatusCode::OK, kind, text);
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Allows the page to load nothing from other origins, open sessions to its own, run no inline code, and be embedded in
/// no frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FILES: [(&str, &str, &str); 3] = [
    (
        "",
        "text/html; charset=utf-8",
        include_str!("page/index.html"),
    ),
    (
        "/test.css",
        "text/css; charset=utf-8",
        include_str!("page/test.css"),
    ),
    (
        "/test.js",
        "text/javascript; charset=utf-8",
        include_str!("page/test.js"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_no_code_in_its_markup_and_writes_text_only() {
        for (name, _, text) in FILES {
            for forbidden in ["innerHTML", "insertAdjacentHTML", "eval(", " style=", "://"] {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
        }
    }
}
