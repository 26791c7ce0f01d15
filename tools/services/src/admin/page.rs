//! The files of the live page.

use http::{HeaderValue, Response, StatusCode, header};

use crate::body::{Body, typed};

/// Returns a file of the page, or `None` if no file has this path. The files contain no data of the server.
pub(super) fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, text) = FILES.iter().find(|(name, _, _)| *name == path)?;
    let mut response = typed(StatusCode::OK, kind, *text);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// Returns true if a path names a file of the page.
pub(super) fn is_part(path: &str) -> bool {
    FILES.iter().any(|(name, _, _)| *name == path)
}

/// Allows the page to load nothing from other origins, run no inline code, and be embedded in no frame.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &str); 9] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("page/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    ("/main.js", SCRIPT, include_str!("page/main.js")),
    ("/words.js", SCRIPT, include_str!("page/words.js")),
    ("/summary.js", SCRIPT, include_str!("page/summary.js")),
    ("/table.js", SCRIPT, include_str!("page/table.js")),
    ("/charts.js", SCRIPT, include_str!("page/charts.js")),
    ("/watch.js", SCRIPT, include_str!("page/watch.js")),
    ("/trace.js", SCRIPT, include_str!("page/trace.js")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_no_code_in_its_markup_and_loads_nothing_from_elsewhere() {
        for (name, _, text) in FILES {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
            for (at, _) in text.match_indices("://") {
                // The namespace of SVG is only a name and is not loaded.
                let is_name = text[at..].starts_with("://www.w3.org/2000/svg\"");
                assert!(is_name, "{name}: {}", &text[at..]);
            }
        }
        let (_, _, html) = FILES[0];
        for inline in [
            " style=",
            "<style",
            " onclick",
            " onload",
            " onerror",
            "javascript:",
        ] {
            assert!(!html.contains(inline), "{inline} needs 'unsafe-inline'");
        }
        let scripts = html.matches("<script").count();
        assert_eq!(
            scripts,
            html.matches("<script type=\"module\" src=").count()
        );
    }
}
