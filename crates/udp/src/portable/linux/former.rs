//! Sockets that a process keeps at an address that it has left to the next one.

use std::fs;

/// Returns true if sockets are bound to this port, and all of them are connected. Another socket then receives
/// everything except the datagrams of their peers.
///
/// A port with a socket that is not connected belongs to somebody, on whichever address it is.
pub(crate) fn has_only_connected(port: u16) -> bool {
    let mut found = false;
    for table in ["/proc/net/udp", "/proc/net/udp6"] {
        // Without IPv6 there is no second table. Without any, nothing is found.
        let text = fs::read_to_string(table).unwrap_or_default();
        for state in states(&text, port) {
            if state != CONNECTED {
                return false;
            }
            found = true;
        }
    }
    found
}

/// Returns the states of the sockets at a port.
fn states(table: &str, port: u16) -> impl Iterator<Item = &str> {
    let port = format!("{port:04X}");
    table.lines().filter_map(move |line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (_, at) = columns.next()?.rsplit_once(':')?;
        let state = columns.nth(1)?;
        (at == port).then_some(state)
    })
}

/// The state `TCP_ESTABLISHED`, which connected UDP sockets have too.
const CONNECTED: &str = "01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_port_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
            41: 0100007F:1151 0100007F:A3C1 01 00000000:00000000 00:00000000 00000000     0\n   \
            42: 00000000:1151 00000000:0000 07 00000000:00000000 00:00000000 00000000     0\n   \
            43: 00000000:1152 00000000:0000 07 00000000:00000000 00:00000000 00000000     0\n";
        let all: Vec<_> = states(table, 0x1151).collect();
        assert_eq!(all, ["01", "07"]);
        assert_eq!(states(table, 0x1150).count(), 0);
        assert_eq!(states("", 1).count(), 0);
    }
}
