//! The stacks there are.

use std::path::{Path, PathBuf};

use peers::Failure;

use super::plan::{Plan, Workload};

/// Programs that are measured together, under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) server: PathBuf,
    pub(crate) client: Client,
    /// True when its programs speak HTTP, false when they speak `perf`.
    pub(crate) is_http: bool,
}

/// What asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// A peer program.
    Peer(PathBuf),
    /// `courser load`, the same for all servers of HTTP, with its word for the protocol.
    Load {
        program: PathBuf,
        protocol: &'static str,
    },
}

impl Stack {
    /// True when this stack can do this.
    pub(crate) fn does(&self, workload: Workload) -> bool {
        self.is_http == workload.is_http()
    }

    fn programs(&self) -> [&Path; 2] {
        let client = match &self.client {
            Client::Peer(program) | Client::Load { program, .. } => program,
        };
        [&self.server, client]
    }
}

/// A stack as the tables below have it; programs lie beside this one.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    server: &'static str,
    client: &'static str,
    is_optional: bool,
}

/// Stacks of QUIC, and TCP, in the order of measurement: the same program at both ends.
const STACKS: &[(&str, &str)] = &[
    ("courser", "peer-courser"),
    ("quinn", "peer-quinn"),
    (TCP, "peer-tls-tcp"),
];

/// Servers of HTTP with one client for all, then clients with one server for all. Optional are
/// those that take more than this workspace to build.
const HTTP_STACKS: &[Entry] = &[
    server("h3-courser", "peer-http-courser", H3),
    server("h3-quinn", "peer-http-h3-quinn", H3),
    server("h2-hyper", "peer-http-hyper", H2),
    optional(server("h3-quic-go", "peer-http-quic-go", H3)),
    optional(server("h3-quiche", "peer-http-quiche", H3)),
    client("from-courser", "peer-http-courser"),
    client("from-h3-quinn", "peer-http-h3-quinn"),
    optional(client("from-quic-go", "peer-http-quic-go")),
    optional(client("from-quiche", "peer-http-quiche")),
];

const fn server(name: &'static str, server: &'static str, client: &'static str) -> Entry {
    Entry {
        name,
        server,
        client,
        is_optional: false,
    }
}

const fn client(name: &'static str, client: &'static str) -> Entry {
    Entry {
        name,
        server: "peer-http-courser",
        client,
        is_optional: false,
    }
}

const fn optional(entry: Entry) -> Entry {
    Entry {
        is_optional: true,
        ..entry
    }
}

/// `courser load` over HTTP/3 and HTTP/2.
const H3: &str = "--h3";
const H2: &str = "--h2";

const TCP: &str = "tls-tcp";

/// The stacks of a plan: those that do any of its workloads.
pub(crate) fn select(plan: &Plan) -> Result<Vec<Stack>, Failure> {
    let mut known = Vec::new();
    for (name, program) in STACKS {
        // A link is one of UDP.
        if plan.link.is_some() && *name == TCP {
            continue;
        }
        known.push(both_ends(name, beside(program)?));
    }
    for entry in HTTP_STACKS {
        let stack = of_http(entry)?;
        let is_built = stack.programs().iter().all(|program| program.is_file());
        if is_built || !entry.is_optional || plan.stacks.contains(&stack.name) {
            known.push(stack);
        }
    }
    for peer in &plan.peers {
        let stack = both_ends(&peer.name, peer.program.clone());
        match known.iter_mut().find(|known| known.name == stack.name) {
            Some(replaced) => *replaced = stack,
            None => known.push(stack),
        }
    }
    if plan.link.is_some() && plan.stacks.iter().any(|name| name == TCP) {
        return Err(format!("--link is one of UDP: leave {TCP} out of --stacks").into());
    }
    let is_wanted = |stack: &Stack| plan.workloads.iter().any(|one| stack.does(*one));
    let mut selected = choose(known, &plan.stacks)?;
    selected.retain(is_wanted);
    if selected.is_empty() {
        return Err("none of the stacks does any of the workloads".into());
    }
    for stack in &selected {
        for program in stack.programs() {
            if !program.is_file() {
                let (name, program) = (&stack.name, program.display());
                return Err(format!("{name} has no program at {program}").into());
            }
        }
    }
    Ok(selected)
}

fn both_ends(name: &str, program: PathBuf) -> Stack {
    Stack {
        name: name.to_owned(),
        server: program.clone(),
        client: Client::Peer(program),
        is_http: false,
    }
}

fn of_http(entry: &Entry) -> Result<Stack, Failure> {
    let client = match entry.client {
        protocol @ (H3 | H2) => Client::Load {
            program: courser()?,
            protocol,
        },
        program => Client::Peer(beside(program)?),
    };
    Ok(Stack {
        name: entry.name.to_owned(),
        server: beside(entry.server)?,
        client,
        is_http: true,
    })
}

/// A program in the folder of this one.
pub(crate) fn beside(program: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    Ok(own.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}

/// The binary of the other workspace, whose profile for figures is called `dist`, and this one's
/// `release`.
pub(crate) fn courser() -> Result<PathBuf, Failure> {
    let program = beside("courser")?;
    let folder = program.parent().unwrap_or(&program);
    if !folder.ends_with(RELEASE) {
        return Ok(program);
    }
    let file = program.file_name().unwrap_or_default();
    Ok(folder.with_file_name(DIST).join(file))
}

/// The profile of this workspace with fat LTO.
pub(crate) const RELEASE: &str = "release";
/// The same of courser's own workspace.
pub(crate) const DIST: &str = "dist";

fn choose(known: Vec<Stack>, names: &[String]) -> Result<Vec<Stack>, Failure> {
    if names.is_empty() {
        return Ok(known);
    }
    let find = |name: &String| {
        let found = known.iter().find(|stack| stack.name == *name).cloned();
        found.ok_or_else(|| format!("no stack is called {name}").into())
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(name: &str) -> Stack {
        both_ends(name, PathBuf::new())
    }

    #[test]
    fn stacks_come_in_the_order_of_the_command_line() {
        let names = ["b".to_owned(), "a".to_owned()];
        let chosen = choose(vec![stack("a"), stack("b"), stack("c")], &names).unwrap();
        assert_eq!(chosen, [stack("b"), stack("a")]);
    }

    #[test]
    fn an_unknown_stack_is_refused() {
        assert!(choose(vec![stack("a")], &["x".to_owned()]).is_err());
        assert_eq!(choose(vec![stack("a")], &[]).unwrap(), [stack("a")]);
    }

    #[test]
    fn stacks_do_what_they_speak() {
        assert!(stack("a").does(Workload::Up) && !stack("a").does(Workload::HttpDown));
        let http = of_http(&HTTP_STACKS[0]).unwrap();
        assert!(http.does(Workload::HttpDown) && !http.does(Workload::Handshake));
    }
}
