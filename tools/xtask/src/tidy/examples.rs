//! Checks that the calls which programs make first have an example in their documentation.

use crate::report::Problems;
use crate::tree::File;

/// Checks each of [`CALLS`].
pub(super) fn check(files: &[File]) -> Problems {
    let mut problems = Problems::new();
    for &(path, owner, names) in CALLS {
        let file = files.iter().find(|file| file.path == path);
        let text = file.map_or("", |file| &file.text);
        for name in names {
            match has_example(text, owner, name) {
                Some(true) => {}
                Some(false) => problems.push(format!("{path}: {owner}::{name} has no example")),
                None => problems.push(format!("{path}: there is no {owner}::{name}")),
            }
        }
    }
    problems
}

/// Returns true if the documentation of `owner::name` has code, or `None` if there is no such function.
/// Free functions have an empty owner.
fn has_example(source: &str, owner: &str, name: &str) -> Option<bool> {
    let (mut current, mut has_code) = ("", false);
    for line in source.lines() {
        let text = line.trim_start();
        if let Some(doc) = text.strip_prefix("///") {
            has_code |= doc.trim_start().starts_with("```");
            continue;
        }
        if text.starts_with("#[") {
            continue;
        }
        if line.starts_with("impl") {
            current = owner_of(line);
        } else if line.starts_with('}') {
            current = "";
        }
        if current == owner && function_of(text) == Some(name) {
            return Some(has_code);
        }
        has_code = false;
    }
    None
}

/// Returns the type of an `impl` without its parameters.
fn owner_of(line: &str) -> &str {
    let rest = line.trim_start_matches("impl").trim_start();
    let rest = match rest.starts_with('<') {
        true => rest.split_once("> ").map_or(rest, |(_, rest)| rest),
        false => rest,
    };
    let rest = rest.split_once(" for ").map_or(rest, |(_, owner)| owner);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the name of the public function that a line begins.
fn function_of(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let rest = rest.strip_prefix("async ").unwrap_or(rest);
    let rest = rest.strip_prefix("fn ")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(&rest[..end])
}

/// The calls that programs make first: file, type, functions.
const CALLS: &[(&str, &str, &[&str])] = &[
    (
        "crates/quic/src/api/builder.rs",
        "Endpoint",
        &["server", "client"],
    ),
    (
        "crates/quic/src/api/builder.rs",
        "EndpointBuilder",
        &["bind", "socket", "shards"],
    ),
    (
        "crates/quic/src/api/endpoint.rs",
        "Endpoint",
        &[
            "connect",
            "connect_with",
            "accept",
            "wait_idle",
            "stats",
            "set_server_config",
            "capabilities",
        ],
    ),
    (
        "crates/quic/src/api/connection.rs",
        "Connection",
        &[
            "open_uni",
            "open_bi",
            "accept_uni",
            "accept_bi",
            "closed",
            "close",
            "rtt",
            "stats",
            "handshake_data",
            "peer_identity",
            "export_keying_material",
            "set_sink",
            "set_congestion_controller",
        ],
    ),
    ("crates/quic/src/api/ping.rs", "Connection", &["ping"]),
    (
        "crates/quic/src/api/connecting.rs",
        "Connecting",
        &["early"],
    ),
    (
        "crates/quic/src/api/datagram.rs",
        "Connection",
        &[
            "send_datagram",
            "send_datagram_with",
            "send_datagram_tracked",
            "read_datagram",
            "max_datagram_size",
        ],
    ),
    ("crates/quic/src/api/migrate.rs", "Endpoint", &["rebind_to"]),
    ("crates/quic/src/api/migrate.rs", "Connection", &["migrate"]),
    (
        "crates/quic/src/api/send_stream.rs",
        "SendStream",
        &[
            "write",
            "write_all",
            "write_chunk",
            "finish",
            "reset",
            "set_priority",
            "stopped",
        ],
    ),
    (
        "crates/quic/src/api/receive_stream.rs",
        "RecvStream",
        &["read", "read_exact", "read_chunk", "read_to_end", "stop"],
    ),
    (
        "crates/quic/src/api/incoming.rs",
        "Incoming",
        &["accept", "refuse", "retry"],
    ),
    (
        "crates/quic/src/config/identity.rs",
        "Identity",
        &["dev", "self_signed", "from_pem_files"],
    ),
    (
        "crates/quic/src/config/server.rs",
        "ServerConfig",
        &["early_data"],
    ),
    (
        "crates/quic/src/config/client.rs",
        "ClientConfig",
        &["with_roots"],
    ),
    ("crates/http3-tokio/src/serve.rs", "", &["serve"]),
    ("crates/http3-tokio/src/serve.rs", "Serve", &["drain"]),
    (
        "crates/http3-tokio/src/client.rs",
        "Client",
        &["new", "send", "connect"],
    ),
    (
        "crates/http3-tokio/src/server.rs",
        "ServerConnection",
        &["accept"],
    ),
    (
        "crates/http3-tokio/src/unresolved.rs",
        "Unresolved",
        &["resolve"],
    ),
    (
        "crates/http3-tokio/src/respond.rs",
        "Respond",
        &["send", "interim"],
    ),
    ("crates/http3-tokio/src/upgrade.rs", "", &["upgrade"]),
    ("crates/server/src/builder.rs", "", &["serve"]),
    (
        "crates/server/src/builder.rs",
        "Server",
        &["limits", "transport", "drain", "on_event"],
    ),
    ("crates/server/src/run.rs", "Server", &["bind"]),
    (
        "crates/server/src/handle.rs",
        "ServerHandle",
        &["stats", "drain", "set_busy"],
    ),
    (
        "crates/server/src/certificates.rs",
        "Certificates",
        &["pem_files", "with_pem_files"],
    ),
    ("crates/client/src/builder.rs", "Client", &["builder"]),
    (
        "crates/client/src/builder.rs",
        "ClientBuilder",
        &["root", "transport_config"],
    ),
    (
        "crates/client/src/lib.rs",
        "Client",
        &["get", "send", "prepare_early_data"],
    ),
    (
        "crates/transport/src/endpoint/mod.rs",
        "Endpoint",
        &["new", "next_touched", "poll_transmit", "next_timeout"],
    ),
    (
        "crates/transport/src/endpoint/lifecycle.rs",
        "Endpoint",
        &["connect"],
    ),
    (
        "crates/transport/src/endpoint/receive.rs",
        "Endpoint",
        &["handle_datagrams"],
    ),
    (
        "crates/transport/src/endpoint/clients.rs",
        "Endpoint",
        &["poll_incoming"],
    ),
    (
        "crates/transport/src/connection/mod.rs",
        "Connection",
        &["poll_event", "streams", "stats"],
    ),
    (
        "crates/transport/src/connection/close.rs",
        "Connection",
        &["close"],
    ),
    (
        "crates/transport/src/stream/reading.rs",
        "Streams",
        &["accept", "read_chunk"],
    ),
    (
        "crates/transport/src/stream/writing.rs",
        "Streams",
        &["write"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// One.\n///\n/// ```\n/// one();\n/// ```\n#[must_use]\npub fn one() {}\n\n\
         impl<T> Thing<T> {\n    /// Two.\n    pub async fn two(&self) {}\n\n    /// ```\n    /// x\n\
         /// ```\n    pub fn three() {\n        // text\n    }\n}\n\nimpl Other for Thing<u8> {\n    \
         /// ```\n    fn two() {}\n}\n";

    #[test]
    fn examples_belong_to_the_function_below_them() {
        assert_eq!(has_example(SOURCE, "", "one"), Some(true));
        assert_eq!(has_example(SOURCE, "Thing", "two"), Some(false));
        assert_eq!(has_example(SOURCE, "Thing", "three"), Some(true));
        assert_eq!(has_example(SOURCE, "", "three"), None);
        assert_eq!(has_example(SOURCE, "Other", "two"), None);
    }

    #[test]
    fn a_call_without_an_example_is_a_problem() {
        let source = "impl Connecting {\n    /// Early.\n    pub async fn early(self) {}\n}\n";
        let path = "crates/quic/src/api/connecting.rs";
        let problems = check(&[File::new(path.to_owned(), source.to_owned())]);
        let is_named = |problem: &&String| problem.starts_with(path);
        let found: Vec<&String> = problems.iter().filter(is_named).collect();
        assert_eq!(
            found,
            ["crates/quic/src/api/connecting.rs: Connecting::early has no example"]
        );
    }

    /// The issue that asked for examples wants at least 40.
    #[test]
    fn the_list_has_forty_calls() {
        let count: usize = CALLS.iter().map(|(_, _, names)| names.len()).sum();
        assert!(count >= 40, "{count}");
    }
}
