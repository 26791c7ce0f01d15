//! The walls inside `transport`: endpoint above connection, connection above its parts.

use crate::modules::{Modules, Reference};
use crate::report::Problems;
use crate::tree::File;

/// Returns each reference that leads up, and each exception that is not used any more.
pub(super) fn check(files: &[File]) -> Problems {
    let modules = Modules::new(files, "transport");
    let references = modules.references();
    let mut problems = Problems::new();
    for reference in references.iter().filter(|reference| leads_up(reference)) {
        if EXCEPTIONS.iter().any(|allowed| allowed.covers(reference)) {
            continue;
        }
        let Reference {
            from, line, name, ..
        } = reference;
        let (below, above) = (part(reference.from), part(reference.to));
        problems.push(format!(
            "{from}:{line}: {} may not use `{name}` of {}",
            below.name(),
            above.name()
        ));
    }
    for exception in EXCEPTIONS.iter().filter(|one| one.exists_in(files)) {
        if !references.iter().any(|found| exception.covers(found)) {
            problems.push(format!(
                "{}: does not use {} any more; remove the exception from \
                 tools/xtask/src/tidy/walls.rs ({})",
                exception.from, exception.to, exception.reason
            ));
        }
    }
    problems
}

/// The parts of the crate, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Streams, paths, spaces and all other parts of a connection.
    Below,
    Connection,
    Endpoint,
    /// The root of the crate, which re-exports all of them.
    Root,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Below => "a part of connections",
            Self::Connection => "connection",
            Self::Endpoint => "endpoint",
            Self::Root => "the root",
        }
    }
}

/// Returns the part that the file at `path` belongs to.
fn part(path: &str) -> Part {
    let inner = path.strip_prefix(SOURCES).unwrap_or(path);
    let first = inner.split('/').next().unwrap_or(inner);
    match first.strip_suffix(".rs").unwrap_or(first) {
        "connection" => Part::Connection,
        "endpoint" => Part::Endpoint,
        "lib" => Part::Root,
        _ => Part::Below,
    }
}

fn leads_up(reference: &&Reference<'_>) -> bool {
    part(reference.from) < part(reference.to)
}

/// A reference that leads up, with its reason.
struct Exception {
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

impl Exception {
    fn covers(&self, reference: &Reference<'_>) -> bool {
        reference.from == self.from && reference.to == self.to
    }

    fn exists_in(&self, files: &[File]) -> bool {
        files.iter().any(|file| file.path == self.from)
    }
}

/// The references that lead up today. This list may only shrink.
const EXCEPTIONS: &[Exception] = &[Exception {
    from: "crates/transport/src/config/endpoint.rs",
    to: "crates/transport/src/endpoint/stateless/reply_limiter.rs",
    reason: "the configuration contains the limits of replies to unauthenticated peers",
}];

const SOURCES: &str = "crates/transport/src/";

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Problems {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File::new(format!("{SOURCES}{path}"), (*text).to_owned()))
            .collect();
        check(&files)
    }

    const ROOT: &str = "mod connection;\nmod endpoint;\nmod path;\npub use connection::Connection;";

    #[test]
    fn references_down_are_in_order() {
        let found = problems(&[
            ("lib.rs", ROOT),
            (
                "endpoint.rs",
                "use crate::connection::Connection;\nuse crate::path::Path;",
            ),
            (
                "connection/mod.rs",
                "use crate::path::Path;\npub struct Connection(Path);",
            ),
            ("path.rs", "pub struct Path;"),
        ]);
        assert_eq!(found, Problems::new());
    }

    #[test]
    fn a_part_may_not_use_the_connection() {
        let connection = ("connection/mod.rs", "pub struct Connection;");
        for import in [
            "use crate::connection::Connection;",
            "use super::Connection;",
        ] {
            let found = problems(&[("lib.rs", ROOT), connection, ("path.rs", import)]);
            assert_eq!(found.len(), 1, "{import}");
            assert!(
                found[0].starts_with(
                    "crates/transport/src/path.rs:1: a part of connections may not use"
                ),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_connection_may_not_use_the_endpoint() {
        let found = problems(&[
            ("lib.rs", ROOT),
            ("endpoint/mod.rs", "pub struct Endpoint;"),
            (
                "connection/idle.rs",
                "\nfn f() -> crate::endpoint::Endpoint {}",
            ),
        ]);
        assert_eq!(
            found,
            [
                "crates/transport/src/connection/idle.rs:2: connection may not use \
                 `crate::endpoint::Endpoint` of endpoint"
            ]
        );
    }

    #[test]
    fn an_exception_holds_for_its_two_files_only() {
        let user = "use crate::endpoint::stateless::reply_limiter::Limits;";
        let files = [
            ("lib.rs", ROOT),
            (
                "endpoint/mod.rs",
                "pub(crate) mod stateless;\npub struct Other;",
            ),
            ("endpoint/stateless/mod.rs", "pub(crate) mod reply_limiter;"),
            ("endpoint/stateless/reply_limiter.rs", "pub struct Limits;"),
            ("config/endpoint.rs", user),
        ];
        assert_eq!(problems(&files), Problems::new());
        let other = format!("{user}\nuse crate::endpoint::Other;");
        let mut files = files.to_vec();
        files[4].1 = &other;
        let found = problems(&files);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn an_exception_without_a_use_is_refused() {
        let found = problems(&[("lib.rs", ROOT), ("config/endpoint.rs", "fn f() {}")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("remove the exception"), "{found:?}");
    }

    #[test]
    fn tests_may_use_everything() {
        let found = problems(&[
            ("lib.rs", ROOT),
            ("connection/mod.rs", "pub struct Connection;"),
            ("path/tests.rs", "use crate::connection::Connection;"),
        ]);
        assert_eq!(found, Problems::new());
    }
}
