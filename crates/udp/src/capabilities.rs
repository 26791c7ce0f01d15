//! What a socket can do on this machine, and what its administrator should change.

/// Bytes of socket buffer to ask for, each way: some 20 ms at 3 Gbit/s, which is how long a
/// busy receiver may be kept from its socket before it loses packets.
pub(crate) const BUFFER_WANTED: usize = 7 << 20;

/// What a socket can do here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// Most datagrams in one send call; 1 when the kernel cannot split a batch.
    pub gso_segments: usize,
    /// Received datagrams may arrive merged into one batch.
    pub gro: bool,
    /// ECN marks can be sent and seen.
    pub ecn: bool,
    /// Received datagrams tell the address of ours they were sent to, though the socket is bound
    /// to a wildcard.
    pub pktinfo: bool,
    /// Bytes the receive buffer holds, in the unit of the request. Linux reports twice this.
    pub receive_buffer: usize,
    /// Bytes of receive buffer that were asked for.
    pub receive_buffer_wanted: usize,
    /// Bytes the send buffer holds, in the unit of the request.
    pub send_buffer: usize,
    /// Bytes of send buffer that were asked for.
    pub send_buffer_wanted: usize,
    /// What costs speed here, each with the command or change that mends it. For a human.
    pub warnings: Vec<String>,
}

impl Default for Capabilities {
    /// What every socket can do: one datagram per call, neither marks nor addresses.
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
    /// The warnings that follow from the other fields.
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

/// The kernel's setting that capped the buffer, where it has a name.
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
