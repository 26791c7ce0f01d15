//! The upgrade of a running server: on SIGUSR2 it starts its program again, hands its listening sockets over to
//! the new process, and drains once that serves. No client is refused meanwhile.
//!
//! Both processes exchange messages over a socket pair, which is the standard input of the new process. The new
//! process reads its files, sends `ready`, receives the sockets, opens what else it needs, and sends `serving`.
//!
//! A process between them is the child of one and the parent of the other. Its end makes the new process a child of
//! the service manager, as its main process has to be: systemd kills one that is not its child without waiting for it.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use courser::server::{ListeningSockets, ServerHandle};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::messages;
use super::notify::{self, notify};
use super::open_admin::OpenAdmin;

/// The process that this one replaces. It waits for this one.
#[derive(Debug)]
pub(super) struct Former {
    link: Link,
    addresses: Vec<SocketAddr>,
}

/// The sockets that a process hands over.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) sockets: Vec<ListeningSockets>,
    /// The socket of the admin endpoints.
    pub(super) admin: Option<TcpListener>,
}

/// Starts the new process and waits for its end, if this process is the one between both. It ends with the same
/// status, or before, when it is killed.
pub(super) fn stand_between() -> io::Result<()> {
    if !is_marked() || std::env::var_os(IS_NEW).is_some() {
        return Ok(());
    }
    let mut child = same_command()?.env(IS_NEW, "1").spawn()?;
    let status = child.wait()?;
    let of_signal = || status.signal().map_or(1, |signal| 128 + signal);
    std::process::exit(status.code().unwrap_or_else(of_signal))
}

impl Former {
    /// Returns the process that has started this one for an upgrade, if there is one. Until this process serves, it
    /// ends with the process between both.
    pub(super) fn find() -> io::Result<Option<Self>> {
        if !is_marked() {
            return Ok(None);
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if !is_marked() {
            // It has ended meanwhile.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let link = Link(io::stdin().as_fd().try_clone_to_owned()?);
        set_socket_timeout(&link.0, Timeout::Recv, Some(PATIENCE))?;
        let addresses = std::env::var(ADDRESSES).unwrap_or_default();
        let addresses = addresses.split(',').filter_map(|it| it.parse().ok());
        Ok(Some(Self {
            link,
            addresses: addresses.collect(),
        }))
    }

    /// Returns the addresses that the process serves.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Receives the sockets.
    pub(super) fn receive(&mut self) -> io::Result<Handed> {
        self.link.send(&Message::Ready, &[])?;
        let mut handed = Handed::default();
        loop {
            let (message, sockets) = self.link.receive()?;
            let mut sockets = sockets.into_iter();
            match message {
                Message::Address {
                    address,
                    has_tcp,
                    stay_open,
                } => {
                    let tcp = has_tcp.then(|| sockets.next()).flatten();
                    let udp = sockets.map(UdpSocket::from).collect();
                    let mut sockets =
                        ListeningSockets::new(address, tcp.map(TcpListener::from), udp);
                    sockets.stay_open = stay_open;
                    handed.sockets.push(sockets);
                }
                Message::Admin => handed.admin = sockets.next().map(TcpListener::from),
                Message::Last => return Ok(handed),
                Message::Ready | Message::Serving { .. } => return Err(unexpected()),
            }
        }
    }

    /// Reports that this process serves.
    pub(super) fn on_serving(self) {
        // Without this, the end of the process between both would end this one.
        let _ = set_parent_process_death_signal(None);
        let process = std::process::id();
        // If the former process has ended, nothing is left to drain.
        let _ = self.link.send(&Message::Serving { process }, &[]);
    }
}

/// Starts the program again on SIGUSR2, and drains this process once the new one serves. The signal is handled from
/// this call on, before the future is polled: without a handler it ends the process.
pub(super) fn on_signals(
    handle: ServerHandle,
    admin: Option<OpenAdmin>,
    as_json: bool,
) -> impl Future<Output = ()> + Send {
    let signals = signal(SignalKind::user_defined2());
    async move {
        let Ok(mut signals) = signals else {
            return;
        };
        while signals.recv().await.is_some() {
            let socket = admin.as_ref().map(|admin| admin.socket.try_clone());
            let upgraded = match socket.transpose() {
                Ok(socket) => upgrade(&handle, socket).await,
                Err(error) => Err(error),
            };
            match upgraded {
                Ok(process) => {
                    notify(&format!("MAINPID={process}"));
                    // From now on, the service manager accepts only messages of the new process.
                    notify::stop();
                    print(process, as_json);
                    // The new process answers there.
                    if let Some(admin) = &admin {
                        admin.task.abort();
                    }
                    return handle.retire();
                }
                Err(error) => messages::warning(as_json)(&format!(
                    "the new process does not serve: {error}; this one continues"
                )),
            }
        }
    }
}

fn print(process: u32, as_json: bool) {
    match as_json {
        true => messages::line(json!({"event": "upgraded", "process": process}).to_string()),
        false => messages::note(format!("process {process} serves new clients from now on")),
    }
}

/// Starts the program again and hands the sockets over to it. Returns the ID of the process once it serves.
///
/// # Errors
/// Returns the reason for which the new process does not serve. This process then continues.
async fn upgrade(handle: &ServerHandle, admin: Option<TcpListener>) -> io::Result<u32> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE))?;
    let link = Link(ours);
    let mut child = start(theirs, &handle.local_addrs())?;
    let runtime = tokio::runtime::Handle::current();
    let handle = handle.clone();
    let handing_over = move || {
        let handed = expect_ready(&link)
            .and_then(|()| runtime.block_on(handle.hand_over()))
            .and_then(|sockets| hand_over(&link, sockets, admin));
        match handed.and_then(|()| expect_serving(&link)) {
            Ok(process) => {
                // The new process has become independent of this one.
                let _ = child.kill();
                let _ = child.wait();
                Ok(process)
            }
            Err(error) => {
                let error = end(&mut child, error);
                handle.take_back();
                Err(error)
            }
        }
    };
    let handed = tokio::task::spawn_blocking(handing_over);
    handed.await.map_err(io::Error::other)?
}

/// Starts the process between this one and the new one.
fn start(link: OwnedFd, addresses: &[SocketAddr]) -> io::Result<Child> {
    let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
    same_command()?
        .env_remove(IS_NEW)
        .env(ADDRESSES, addresses.join(","))
        // The sockets of a service manager come with the others.
        .env_remove("LISTEN_FDS")
        .env_remove("LISTEN_PID")
        .stdin(Stdio::from(link))
        .spawn()
}

/// Returns a command that starts the program of this process again with the same arguments, marked as a child of this
/// process. A file that has replaced the program is the one that is started.
fn same_command() -> io::Result<Command> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let arguments = words.split_off(1.min(words.len()));
    let program = words.pop().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env(MARK, std::process::id().to_string());
    Ok(command)
}

/// Returns true if the parent of this process has started it for an upgrade.
fn is_marked() -> bool {
    let parent = std::os::unix::process::parent_id().to_string();
    std::env::var_os(MARK).is_some_and(|mark| mark == *parent)
}

/// Sends the sockets.
fn hand_over(
    link: &Link,
    sockets: Vec<ListeningSockets>,
    admin: Option<TcpListener>,
) -> io::Result<()> {
    for sockets in &sockets {
        let message = Message::Address {
            address: sockets.address,
            has_tcp: sockets.tcp.is_some(),
            stay_open: sockets.stay_open,
        };
        let tcp = sockets.tcp.iter().map(|it| it.as_fd());
        let udp = sockets.udp.iter().map(|it| it.as_fd());
        link.send(&message, &tcp.chain(udp).collect::<Vec<_>>())?;
    }
    if let Some(admin) = admin {
        link.send(&Message::Admin, &[admin.as_fd()])?;
    }
    link.send(&Message::Last, &[])
}

fn expect_ready(link: &Link) -> io::Result<()> {
    match link.receive()?.0 {
        Message::Ready => Ok(()),
        _ => Err(unexpected()),
    }
}

/// Returns the ID of the new process.
fn expect_serving(link: &Link) -> io::Result<u32> {
    match link.receive()?.0 {
        Message::Serving { process } => Ok(process),
        _ => Err(unexpected()),
    }
}

/// Ends a process that does not serve, and returns the reason: its exit status if it has ended on its own.
fn end(child: &mut Child, error: io::Error) -> io::Error {
    let is_over = error.kind() == io::ErrorKind::UnexpectedEof;
    if !is_over {
        let _ = child.kill();
    }
    match child.wait() {
        Ok(status) if is_over => io::Error::other(format!("it has ended: {status}")),
        _ => error,
    }
}

/// A message between the two processes.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
enum Message {
    /// The new process has read its files and waits for the sockets.
    Ready,
    /// The listening socket of an address, if it has one, and its UDP sockets.
    Address {
        address: SocketAddr,
        has_tcp: bool,
        /// True if a service manager holds them as well.
        #[serde(default)]
        stay_open: bool,
    },
    /// The socket of the admin endpoints.
    Admin,
    /// All sockets were sent.
    Last,
    /// The new process, with this ID, serves.
    Serving { process: u32 },
}

/// An end of the connection between the two processes. It keeps the boundaries of messages.
#[derive(Debug)]
struct Link(OwnedFd);

impl Link {
    fn send(&self, message: &Message, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        if sockets.len() > MAX_SOCKETS {
            let most = format!("an address has more than {MAX_SOCKETS} sockets (--shards)");
            return Err(io::Error::other(most));
        }
        let text = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); ANCILLARY];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::Error::other("the sockets do not fit into a message"));
        }
        sendmsg(
            &self.0,
            &[IoSlice::new(&text)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    fn receive(&self) -> io::Result<(Message, Vec<OwnedFd>)> {
        let mut text = [0; MAX_TEXT];
        let mut space = [MaybeUninit::uninit(); ANCILLARY];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let buffers = &mut [IoSliceMut::new(&mut text)];
        let received = recvmsg(&self.0, buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let sockets = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(sockets) => sockets.collect(),
            _ => Vec::new(),
        });
        let sockets = sockets.collect();
        let text = text.get(..received.bytes).unwrap_or_default();
        Ok((serde_json::from_slice(text)?, sockets))
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the other process sent an unexpected message; it may be another version")
}

/// The environment variable by which a process recognizes that it was started for an upgrade. Its value is the ID of
/// its parent, so that other children do not take it for theirs.
const MARK: &str = "COURSER_UPGRADE_OF";

/// The environment variable of the new process, which the process between both lacks.
const IS_NEW: &str = "COURSER_UPGRADE_IS_NEW";

/// The environment variable with the addresses that the former process serves, which are the default of --listen.
const ADDRESSES: &str = "COURSER_UPGRADE_ADDRESSES";

/// Time limit for each step of the other process.
const PATIENCE: Duration = Duration::from_secs(60);

/// The largest number of sockets in a message; Linux has a limit of 253.
const MAX_SOCKETS: usize = 250;

/// Space for that many descriptors and their header.
const ANCILLARY: usize = rustix::cmsg_space!(ScmRights(MAX_SOCKETS));

const MAX_TEXT: usize = 1024;
