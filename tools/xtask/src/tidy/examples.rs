//! Checks that the calls which programs make first have an example in their documentation.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, Signature, Visibility};

use crate::code::type_name;
use crate::report::Problems;
use crate::tree::File;

/// Checks each of [`CALLS`].
pub(super) fn check(files: &[File]) -> Problems {
    let mut problems = Problems::new();
    for &(path, owner, names) in CALLS {
        let file = files.iter().find(|file| file.path == path);
        let found = file.map(|file| functions(file.syntax(), owner));
        for name in names {
            match found.as_ref().and_then(|found| found.get(*name)) {
                Some(true) => {}
                Some(false) => problems.push(format!("{path}: {owner}::{name} has no example")),
                None => problems.push(format!("{path}: there is no {owner}::{name}")),
            }
        }
    }
    problems
}

/// Returns the public functions of `owner`, each with whether its documentation has code. Free functions have an
/// empty owner.
fn functions(file: &syn::File, owner: &str) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    let mut add = |visibility: &Visibility, attributes: &[Attribute], signature: &Signature| {
        if matches!(visibility, Visibility::Public(_)) {
            found.insert(signature.ident.to_string(), has_code(attributes));
        }
    };
    for item in &file.items {
        match item {
            Item::Fn(item) if owner.is_empty() => add(&item.vis, &item.attrs, &item.sig),
            Item::Impl(block) if type_name(&block.self_ty).is_some_and(|name| name == owner) => {
                for item in &block.items {
                    if let ImplItem::Fn(item) = item {
                        add(&item.vis, &item.attrs, &item.sig);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns true if the doc comment among `attributes` has a block of code.
fn has_code(attributes: &[Attribute]) -> bool {
    let mut docs = attributes.iter().filter(|it| it.path().is_ident("doc"));
    docs.any(|doc| doc.to_token_stream().to_string().contains("```"))
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
    ("crates/server/src/builder/http.rs", "Server", &["limits"]),
    (
        "crates/server/src/builder/quic.rs",
        "Server",
        &["transport"],
    ),
    (
        "crates/server/src/builder/life.rs",
        "Server",
        &["drain", "on_event"],
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
        "crates/client/src/builder/trust.rs",
        "ClientBuilder",
        &["root"],
    ),
    (
        "crates/client/src/builder/quic.rs",
        "ClientBuilder",
        &["transport_config"],
    ),
    (
        "crates/client/src/request_builder.rs",
        "Client",
        &["get", "post", "request"],
    ),
    (
        "crates/client/src/request_builder.rs",
        "RequestBuilder",
        &["query", "json", "send_with"],
    ),
    (
        "crates/client/src/lib.rs",
        "Client",
        &["send", "prepare_early_data"],
    ),
    (
        "crates/transport/src/endpoint/mod.rs",
        "Endpoint",
        &["new", "next_ready", "poll_transmit", "next_timeout"],
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
        let file = syn::parse_file(SOURCE).unwrap();
        let has_example = |owner: &str, name: &str| functions(&file, owner).get(name).copied();
        assert_eq!(has_example("", "one"), Some(true));
        assert_eq!(has_example("Thing", "two"), Some(false));
        assert_eq!(has_example("Thing", "three"), Some(true));
        assert_eq!(has_example("", "three"), None);
        assert_eq!(has_example("Other", "two"), None);
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
}
