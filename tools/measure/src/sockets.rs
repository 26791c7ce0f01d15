//! Warnings about the UDP sockets of this machine, each with a remedy.

use std::net::{Ipv4Addr, SocketAddr};

use courser::{Capabilities, Endpoint};
use courser_udp::UdpSocket;
use courser_units::binary_size;

/// Returns a warning for each reason why these sockets are slower than necessary.
pub fn warnings(endpoints: &[Endpoint]) -> Vec<String> {
    let mut found = Vec::new();
    for warning in endpoints
        .iter()
        .flat_map(|endpoint| endpoint.capabilities().warnings)
    {
        if !found.contains(&warning) {
            found.push(warning);
        }
    }
    found
}

/// Returns a warning if the kernel has dropped datagrams on these sockets since they were opened.
pub fn drop_warning(endpoints: &[Endpoint]) -> Option<String> {
    let counts = endpoints.iter().filter_map(Endpoint::receive_overflow);
    // The warning names the smallest buffer, which needs to be enlarged.
    let capabilities = endpoints.iter().map(Endpoint::capabilities);
    let smallest = capabilities.min_by_key(|it| it.receive_buffer)?;
    describe_drops(counts.sum(), &smallest)
}

/// Returns the capabilities of sockets on this machine.
pub fn capabilities() -> Capabilities {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    UdpSocket::bind(any).map_or_else(|_| Capabilities::default(), |socket| socket.capabilities())
}

/// Returns a warning if the kernel dropped received datagrams. `count` is the number that it reports, in
/// which a batch merged by GRO counts once.
pub fn describe_drops(count: u64, capabilities: &Capabilities) -> Option<String> {
    if count == 0 {
        return None;
    }
    let noun = if count == 1 { "datagram" } else { "datagrams" };
    let buffer = binary_size(capabilities.receive_buffer as u64);
    let requested = capabilities.receive_buffer_wanted;
    let is_small = capabilities.receive_buffer < requested;
    let remedy = match is_small && cfg!(target_os = "linux") {
        true => format!("sysctl -w net.core.rmem_max={requested}, then start again"),
        false => "this process needs more CPU time".to_owned(),
    };
    Some(format!(
        "the kernel dropped {count} received {noun} because the receive buffer ({buffer}) was \
         full: {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_buffer(receive_buffer: usize) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.receive_buffer = receive_buffer;
        capabilities.receive_buffer_wanted = 7 << 20;
        capabilities
    }

    #[test]
    fn no_drops_cause_no_warning() {
        assert_eq!(describe_drops(0, &with_buffer(1)), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn warning_about_drops_names_count_buffer_and_command() {
        assert_eq!(
            describe_drops(3, &with_buffer(212_992)).as_deref(),
            Some(
                "the kernel dropped 3 received datagrams because the receive buffer (208.0 KiB) \
                 was full: sysctl -w net.core.rmem_max=7340032, then start again"
            )
        );
    }

    #[test]
    fn drops_despite_a_large_buffer_suggest_more_cpu_time() {
        let warning = describe_drops(1, &with_buffer(7 << 20)).expect("one");
        assert!(warning.contains("1 received datagram because"), "{warning}");
        assert!(
            warning.ends_with("this process needs more CPU time"),
            "{warning}"
        );
    }
}
