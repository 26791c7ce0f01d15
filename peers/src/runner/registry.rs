//! The stacks there are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use peers::Failure;
use peers::installed::{Protocol, Software};

use super::plan::{Peer, Plan};
use super::workload::{Family, Workload};

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
    /// Its abilities for workloads of [`Family::Perf`].
    pub(crate) kind: Kind,
}

/// The abilities of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connections with streams and unreliable datagrams.
    Quic,
    /// The same without datagrams.
    QuicStreams,
    /// The same with datagrams, whose streams do not take turns: a request waits for a transfer beside it.
    QuicInOrder,
    /// Connections that are one stream each.
    Tcp,
    /// Datagrams alone.
    Pipe,
}

impl Kind {
    /// True when a stack of this kind can do this.
    fn does(self, workload: Workload) -> bool {
        match workload {
            Workload::Up | Workload::Down => true,
            Workload::Streams { .. } => self.is_quic(),
            Workload::Latency { .. } => matches!(self, Self::Quic | Self::QuicStreams),
            Workload::Datagrams => matches!(self, Self::Quic | Self::QuicInOrder | Self::Pipe),
            _ => self != Self::Pipe,
        }
    }

    /// True when it can go through an emulated link, which is one of UDP and loses datagrams.
    fn has_links(self) -> bool {
        self.is_quic()
    }

    fn is_quic(self) -> bool {
        matches!(self, Self::Quic | Self::QuicStreams | Self::QuicInOrder)
    }
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
            && (self.family != Family::Perf || self.kind.does(workload))
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

/// Stacks of QUIC, and TCP, in the order of measurement: the same program at both ends. Last the limit.
const STACKS: &[(&str, &str, Kind)] = &[
    ("courser", "peer-courser", Kind::Quic),
    ("quinn", "peer-quinn", Kind::Quic),
    ("noq", "peer-noq", Kind::Quic),
    ("s2n-quic", "peer-s2n-quic", Kind::QuicStreams),
    (MSQUIC, "peer-msquic", Kind::QuicInOrder),
    (TQUIC, "peer-tquic", Kind::QuicStreams),
    ("tls-tcp", "peer-tls-tcp", Kind::Tcp),
    (KTLS, "peer-ktls", Kind::Tcp),
    ("tcp", "peer-tcp", Kind::Tcp),
    ("pipe", "peer-pipe", Kind::Pipe),
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

/// Servers of files and proxies, as `peer-installed` runs them, with one client for all.
const INSTALLED: &[(Software, &[Protocol])] = &[
    (
        Software::Courser,
        &[Protocol::H3, Protocol::H2, Protocol::H1],
    ),
    (Software::Nginx, &[Protocol::H3, Protocol::H2, Protocol::H1]),
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

/// The QUIC of Microsoft.
pub(crate) const MSQUIC: &str = "msquic";
/// The QUIC of Tencent.
pub(crate) const TQUIC: &str = "tquic";

/// Stacks that take more than this workspace to build; their programs are of workspaces of their own.
const OPTIONAL: [&str; 2] = [MSQUIC, TQUIC];

/// TCP with TLS of the kernel, which not every kernel has.
const KTLS: &str = "ktls";

/// The stacks of a plan: those that do any of its workloads.
pub(crate) fn select(plan: &Plan) -> Result<Vec<Stack>, Failure> {
    let mut known = Vec::new();
    for &(name, program, kind) in STACKS {
        if plan.link.is_some() && !kind.has_links() {
            if plan.stacks.iter().any(|wanted| wanted == name) {
                return Err(format!("--link is one of UDP: leave {name} out of --stacks").into());
            }
            continue;
        }
        let program = beside(program)?;
        if name == KTLS && !has_ktls(plan, &program)? {
            continue;
        }
        let is_named = plan.stacks.iter().any(|wanted| wanted == name);
        if OPTIONAL.contains(&name) && !is_named && !program.is_file() {
            continue;
        }
        known.push(both_ends(name, program, kind));
    }
    for entry in HTTP_STACKS {
        let stack = of_http(entry)?;
        let is_built = stack.programs().iter().all(|program| program.is_file());
        if is_built || !entry.is_optional || plan.stacks.contains(&stack.name) {
            known.push(stack);
        }
    }
    for family in [Family::Files, Family::Proxy] {
        if plan.has(family) {
            known.extend(of_installed(plan, family)?);
        }
    }
    for peer in plan.peers.iter().filter(|peer| !is_installed(peer)) {
        let kind = STACKS.iter().find(|(name, ..)| *name == peer.name);
        let kind = kind.map_or(Kind::Quic, |&(_, _, kind)| kind);
        let stack = both_ends(&peer.name, peer.program.clone(), kind);
        match known.iter_mut().find(|known| known.name == stack.name) {
            Some(replaced) => *replaced = stack,
            None => known.push(stack),
        }
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

/// Asks the program whether this kernel takes TLS keys. Without, the stack is left out with a line that
/// says so, and is an error when the plan names it.
fn has_ktls(plan: &Plan, program: &Path) -> Result<bool, Failure> {
    let is_named = plan.stacks.iter().any(|name| name == KTLS);
    let is_wanted = is_named || plan.stacks.is_empty();
    // A program that is missing is reported with the others.
    if !is_wanted || !plan.has(Family::Perf) || !program.is_file() {
        return Ok(is_wanted);
    }
    let answer = Command::new(program).arg("check").output()?.stdout;
    let failure = "this kernel has no TLS (CONFIG_TLS; `modprobe tls` loads it)";
    match answer.trim_ascii() {
        b"yes" => return Ok(true),
        _ if is_named => return Err(format!("{KTLS}: {failure}").into()),
        _ => eprintln!("peers: left out {KTLS}: {failure}"),
    }
    Ok(false)
}

fn both_ends(name: &str, program: PathBuf, kind: Kind) -> Stack {
    Stack {
        name: name.to_owned(),
        server: program.clone(),
        server_arguments: Vec::new(),
        client: Client::Peer(program),
        family: Family::Perf,
        kind,
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
        kind: Kind::Quic,
    })
}

/// The servers of files, or the proxies, that are installed. Others are left out with a line that says
/// so, and are an error when the plan names them.
fn of_installed(plan: &Plan, family: Family) -> Result<Vec<Stack>, Failure> {
    let mut stacks = Vec::new();
    for &(software, protocols) in INSTALLED {
        let mut left_out = Vec::new();
        for &protocol in protocols {
            let name = installed_name(family, software, protocol);
            match find_installed(plan, &name, software, protocol) {
                Ok(program) => stacks.push(installed(family, software, protocol, &program)?),
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

/// The name of a stack of [`INSTALLED`]: `files-nginx-h2`, `proxy-nginx-h2`.
fn installed_name(family: Family, software: Software, protocol: Protocol) -> String {
    let role = match family {
        Family::Proxy => "proxy",
        Family::Files | Family::Http | Family::Perf => "files",
    };
    format!("{role}-{}-{}", software.name(), protocol.name())
}

/// True when this is another program for one of [`INSTALLED`].
fn is_installed(peer: &Peer) -> bool {
    let names = [Family::Files, Family::Proxy]
        .into_iter()
        .flat_map(|family| {
            INSTALLED.iter().flat_map(move |&(software, protocols)| {
                let protocols = protocols.iter();
                protocols.map(move |&protocol| installed_name(family, software, protocol))
            })
        });
    names.into_iter().any(|name| name == peer.name)
}

/// The program of a stack of [`INSTALLED`], which has to speak the protocol.
fn find_installed(
    plan: &Plan,
    name: &str,
    software: Software,
    protocol: Protocol,
) -> Result<PathBuf, Failure> {
    let given = plan.peers.iter().find(|peer| peer.name == name);
    let program = match (given, software) {
        (Some(peer), _) => peer.program.clone(),
        // Built with the runner.
        (None, Software::Courser) => return courser(),
        (None, _) => in_path(software.name())
            .ok_or_else(|| format!("{} is not installed", software.name()))?,
    };
    let build = software.ask(&program)?;
    if build.speaks(protocol) {
        Ok(program)
    } else {
        let (software, protocol) = (software.name(), protocol.name());
        Err(format!("{software} {} does not speak {protocol}", build.version).into())
    }
}

/// Looks for a program where the shell does, and where systems keep servers.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let folders = folders.chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

fn installed(
    family: Family,
    software: Software,
    protocol: Protocol,
    program: &Path,
) -> Result<Stack, Failure> {
    let mut arguments: Vec<OsString> = Vec::new();
    arguments.extend(["--software".into(), software.name().into()]);
    arguments.extend(["--protocol".into(), protocol.name().into()]);
    arguments.extend(["--program".into(), program.into()]);
    Ok(Stack {
        name: installed_name(family, software, protocol),
        server: beside("peer-installed")?,
        server_arguments: arguments,
        client: Client::Load {
            program: courser()?,
            protocol,
        },
        family,
        kind: Kind::Quic,
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
        both_ends(name, PathBuf::new(), Kind::Quic)
    }

    #[test]
    fn stacks_have_what_their_protocol_has() {
        let does =
            |kind, name: &str| both_ends("a", PathBuf::new(), kind).does(name.parse().unwrap());
        for name in [
            "up",
            "streams-8-down",
            "latency-up",
            "datagrams",
            "idle-5",
            "connections-2-up",
        ] {
            assert!(does(Kind::Quic, name), "{name}");
        }
        assert!(does(Kind::QuicStreams, "streams-8-up") && !does(Kind::QuicStreams, "datagrams"));
        assert!(does(Kind::QuicInOrder, "datagrams") && !does(Kind::QuicInOrder, "latency-up"));
        assert!(does(Kind::Tcp, "connections-8-up") && does(Kind::Tcp, "idle-5"));
        assert!(!does(Kind::Tcp, "streams-8-up") && !does(Kind::Tcp, "latency-up"));
        assert!(does(Kind::Pipe, "down") && does(Kind::Pipe, "datagrams"));
        assert!(!does(Kind::Pipe, "handshake") && !does(Kind::Pipe, "rr-1"));
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
        let of =
            |family| installed(family, Software::Nginx, Protocol::H2, Path::new("nginx")).unwrap();
        let (files, proxy) = (of(Family::Files), of(Family::Proxy));
        let names = (files.name.as_str(), proxy.name.as_str());
        assert_eq!(names, ("files-nginx-h2", "proxy-nginx-h2"));
        let workload = "files-100x4".parse().unwrap();
        assert!(files.does(workload) && !http.does(workload) && !stack("a").does(workload));
        let forwarded = "proxy-100x4".parse().unwrap();
        assert!(proxy.does(forwarded) && !proxy.does(workload) && !files.does(forwarded));
    }

    #[test]
    fn installed_servers_may_be_other_programs() {
        let peer = |text: &str| text.parse::<Peer>().unwrap();
        assert!(is_installed(&peer("files-h2o-h3=h2o")));
        assert!(is_installed(&peer("proxy-nginx-h3=nginx")));
        assert!(!is_installed(&peer("files-caddy-h1=caddy")));
        assert_eq!(in_path("no-such-program"), None);
    }
}
