//! The order of modules inside `transport`: endpoint above connection, connection above its parts.

use crate::modules::{Modules, Reference};
use crate::report::Problems;
use crate::tree::File;

/// Returns each reference from a lower part to a higher one.
pub(super) fn check(files: &[File]) -> Problems {
    let modules = Modules::new(files, "transport");
    let references = modules.references();
    let mut problems = Problems::new();
    for reference in references.iter().filter(|reference| is_upward(reference)) {
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

fn is_upward(reference: &&Reference<'_>) -> bool {
    part(reference.from) < part(reference.to)
}

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
    fn tests_may_use_everything() {
        let found = problems(&[
            ("lib.rs", ROOT),
            ("connection/mod.rs", "pub struct Connection;"),
            ("path/tests.rs", "use crate::connection::Connection;"),
        ]);
        assert_eq!(found, Problems::new());
    }
}
