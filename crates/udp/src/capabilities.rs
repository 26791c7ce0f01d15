//! Capabilities of a socket on this machine, and advice for its administrator.

/// Requested size of each socket buffer in bytes: some 20 ms at 3 Gbit/s. A busy receiver may leave
/// its socket alone for that long before packets are lost.
pub(crate) const BUFFER_WANTED: usize = 7 << 20;

/// The capabilities of a socket on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// The largest number of datagrams in one send call; 1 if the kernel cannot split a batch.
    pub gso_segments: usize,
    /// True if received datagrams may arrive merged into one batch.
    pub gro: bool,
    /// True if ECN marks can be sent and received.
    pub ecn: bool,
    /// True if received datagrams carry the local address they were sent to, although the socket is
    /// bound to a wildcard address.
    pub pktinfo: bool,
    /// Size of the receive buffer in bytes, in the unit of the request. Linux reports twice this.
    pub receive_buffer: usize,
    /// Requested size of the receive buffer in bytes.
    pub receive_buffer_wanted: usize,
    /// Size of the send buffer in bytes, in the unit of the request.
    pub send_buffer: usize,
    /// Requested size of the send buffer in bytes.
    pub send_buffer_wanted: usize,
    /// Limits on speed, each with the command or change that removes it. For humans.
    pub warnings: Vec<String>,
}

impl Default for Capabilities {
    /// Returns the capabilities of every socket: one datagram per call, without marks or local
    /// addresses.
    fn default() -> Self {
        Self {
            gso_segments: 1,
            gro: false,
            ecn: false,
            pktinfo: false,
            receive_buffer: 0,
            receive_buffer_wanted: 0,
            send_buffer: 0,
            send_buffer_wanted: 0,
            warnings: Vec::new(),
        }
    }
}

impl Capabilities {
    /// Derives the warnings from the other fields.
    pub(crate) fn find_warnings(&self) -> Vec<String> {
        let receive = (self.receive_buffer < self.receive_buffer_wanted).then(|| {
            buffer_warning(
                "receive",
                "bulk receive will drop packets",
                self.receive_buffer,
                self.receive_buffer_wanted,
            )
        });
        let send = (self.send_buffer < self.send_buffer_wanted).then(|| {
            let harm = "bulk send will wait more often";
            buffer_warning("send", harm, self.send_buffer, self.send_buffer_wanted)
        });
        let gso = (self.gso_segments == 1).then(|| {
            "no segmentation offload (UDP GSO), each datagram costs a system call".to_owned()
        });
        let gro = (!self.gro).then(|| {
            "no receive coalescing (UDP GRO), each datagram costs a system call".to_owned()
        });
        [receive, send, gso, gro].into_iter().flatten().collect()
    }
}

fn buffer_warning(which: &str, harm: &str, effective: usize, wanted: usize) -> String {
    match limit_name(which) {
        Some(name) => {
            format!("{name} is {effective}, {harm}: sysctl -w {name}={wanted}")
        }
        None => format!("{which} buffer is {effective} of {wanted} bytes wanted, {harm}"),
    }
}

/// Returns the name of the kernel setting that limits the buffer, if there is one.
fn limit_name(which: &str) -> Option<&'static str> {
    let known = cfg!(target_os = "linux");
    match which {
        "receive" if known => Some("net.core.rmem_max"),
        "send" if known => Some("net.core.wmem_max"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
