//! The stacks there are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use peers::Failure;
use peers::file_server::{Protocol, Software};

use super::plan::{Family, Peer, Plan, Workload};

/// Programs that are measured together, under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) server: PathBuf,
    /// Arguments of the server that are the same in every measurement.
    pub(crate) server_arguments: Vec<OsString>,
    pub(crate) client: Client,
    /// The family of workloads that it can do.
    pub(crate) family: Family,
}

/// The client of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// A peer program.
    Peer(PathBuf),
    /// `courser load`, the same for all servers of HTTP.
    Load {
        program: PathBuf,
        protocol: Protocol,
    },
}

impl Stack {
    /// True when this stack can do this.
    pub(crate) fn does(&self, workload: Workload) -> bool {
        self.family == workload.family()
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
    client: Asking,
    is_optional: bool,
}

/// A client as the tables below have it.
#[derive(Clone, Copy)]
enum Asking {
    Peer(&'static str),
    Load(Protocol),
}

/// Stacks of QUIC, and TCP, in the order of measurement: the same program at both ends.
const STACKS: &[(&str, &str)] = &[
    ("courser", "peer-courser"),
    ("quinn", "peer-quinn"),
    ("noq", "peer-noq"),
    ("s2n-quic", "peer-s2n-quic"),
    (TCP, "peer-tls-tcp"),
];

/// Servers of HTTP with one client for all, then clients with one server for all. Optional are
/// those that take more than this workspace to build.
const HTTP_STACKS: &[Entry] = &[
    server("h3-courser", "peer-http-courser", Protocol::H3),
    server("h3-quinn", "peer-http-h3-quinn", Protocol::H3),
    server("h2-hyper", "peer-http-hyper", Protocol::H2),
    optional(server("h3-quic-go", "peer-http-quic-go", Protocol::H3)),
    optional(server("h3-quiche", "peer-http-quiche", Protocol::H3)),
    client("from-courser", "peer-http-courser"),
    client("from-h3-quinn", "peer-http-h3-quinn"),
    optional(client("from-quic-go", "peer-http-quic-go")),
    optional(client("from-quiche", "peer-http-quiche")),
];

/// Servers of files, as `peer-files` runs them, with one client for all.
const FILE_STACKS: &[(Software, &[Protocol])] = &[
    (
        Software::Courser,
        &[Protocol::H3, Protocol::H2, Protocol::H1],
    ),
    (Software::Nginx, &[Protocol::H2, Protocol::H1]),
    (Software::H2o, &[Protocol::H3, Protocol::H2]),
    (Software::Caddy, &[Protocol::H3, Protocol::H2]),
];

const fn server(name: &'static str, server: &'static str, protocol: Protocol) -> Entry {
    Entry {
        name,
        server,
        client: Asking::Load(protocol),
        is_optional: false,
    }
}

const fn client(name: &'static str, client: &'static str) -> Entry {
    Entry {
        name,
        server: "peer-http-courser",
        client: Asking::Peer(client),
        is_optional: false,
    }
}

const fn optional(entry: Entry) -> Entry {
    Entry {
        is_optional: true,
        ..entry
    }
}

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
    if plan.has(Family::Files) {
        known.extend(of_files(plan)?);
    }
    for peer in plan.peers.iter().filter(|peer| !is_of_files(peer)) {
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
        server_arguments: Vec::new(),
        client: Client::Peer(program),
        family: Family::Perf,
    }
}

fn of_http(entry: &Entry) -> Result<Stack, Failure> {
    let client = match entry.client {
        Asking::Load(protocol) => Client::Load {
            program: courser()?,
            protocol,
        },
        Asking::Peer(program) => Client::Peer(beside(program)?),
    };
    Ok(Stack {
        name: entry.name.to_owned(),
        server: beside(entry.server)?,
        server_arguments: Vec::new(),
        client,
        family: Family::Http,
    })
}

/// The servers of files that are installed. Others are left out with a line that says so, and are an
/// error when the plan names them.
fn of_files(plan: &Plan) -> Result<Vec<Stack>, Failure> {
    let mut stacks = Vec::new();
    for &(software, protocols) in FILE_STACKS {
        let mut left_out = Vec::new();
        for &protocol in protocols {
            let name = file_stack(software, protocol);
            match find_file_server(plan, software, protocol) {
                Ok(program) => stacks.push(file_server(software, protocol, &program)?),
                Err(failure) if plan.stacks.contains(&name) => {
                    return Err(format!("{name}: {failure}").into());
                }
                Err(failure) => left_out.push((name, failure)),
            }
        }
        // Those that the plan does not name are not missed.
        if plan.stacks.is_empty()
            && let Some((_, failure)) = left_out.first()
        {
            let names: Vec<&str> = left_out.iter().map(|(name, _)| name.as_str()).collect();
            eprintln!("peers: left out {}: {failure}", names.join(" and "));
        }
    }
    Ok(stacks)
}

fn file_stack(software: Software, protocol: Protocol) -> String {
    format!("files-{}-{}", software.name(), protocol.name())
}

/// True when this is another program for a server of files.
fn is_of_files(peer: &Peer) -> bool {
    FILE_STACKS.iter().any(|&(software, protocols)| {
        let mut protocols = protocols.iter();
        protocols.any(|&protocol| file_stack(software, protocol) == peer.name)
    })
}

/// The program of a server of files, which has to speak the protocol.
fn find_file_server(
    plan: &Plan,
    software: Software,
    protocol: Protocol,
) -> Result<PathBuf, Failure> {
    let name = file_stack(software, protocol);
    let given = plan.peers.iter().find(|peer| peer.name == name);
    let program = match (given, software) {
        (Some(peer), _) => peer.program.clone(),
        // Built with the runner.
        (None, Software::Courser) => return courser(),
        (None, _) => installed(software.name())
            .ok_or_else(|| format!("{} is not installed", software.name()))?,
    };
    let version = software.version(&program)?;
    if software.speaks(protocol, &version) {
        Ok(program)
    } else {
        let (software, protocol) = (software.name(), protocol.name());
        Err(format!("{software} {version} does not speak {protocol}").into())
    }
}

/// Looks for a program where the shell does, and where systems keep servers.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let folders = folders.chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

fn file_server(software: Software, protocol: Protocol, program: &Path) -> Result<Stack, Failure> {
    let mut arguments: Vec<OsString> = Vec::new();
    arguments.extend(["--software".into(), software.name().into()]);
    arguments.extend(["--protocol".into(), protocol.name().into()]);
    arguments.extend(["--program".into(), program.into()]);
    Ok(Stack {
        name: file_stack(software, protocol),
        server: beside("peer-files")?,
        server_arguments: arguments,
        client: Client::Load {
            program: courser()?,
            protocol,
        },
        family: Family::Files,
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
        let files = file_server(Software::Nginx, Protocol::H2, Path::new("nginx")).unwrap();
        assert_eq!(files.name, "files-nginx-h2");
        let workload = "files-100x4".parse().unwrap();
        assert!(files.does(workload) && !http.does(workload) && !stack("a").does(workload));
    }

    #[test]
    fn servers_of_files_may_be_other_programs() {
        let peer = |text: &str| text.parse::<Peer>().unwrap();
        assert!(is_of_files(&peer("files-h2o-h3=h2o")));
        assert!(!is_of_files(&peer("files-nginx-h3=nginx")));
        assert_eq!(installed("no-such-program"), None);
    }
}
