//! What a system allows.

use std::fs;
use std::path::Path;

/// Returns true if the system has IPv6, and new interfaces have it too.
pub(crate) fn has_ipv6() -> bool {
    ["all", "default"].iter().all(|interface| {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
        fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
    })
}

/// Returns what keeps this process from creating a device.
pub(crate) fn obstacles() -> Vec<String> {
    let mut found = Vec::new();
    if !Path::new("/dev/net/tun").exists() {
        found.push(courser_tun::OpenError::Missing.to_string());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !has_net_admin(&status) {
        found.push(courser_tun::OpenError::NotPermitted.to_string());
    }
    found
}

/// Returns true if the effective capabilities contain CAP_NET_ADMIN.
fn has_net_admin(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << CAP_NET_ADMIN) != 0)
}

const CAP_NET_ADMIN: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_is_a_bit_of_the_effective_set() {
        for (status, expected) in [
            ("Name:\tx\nCapEff:\t000001ffffffffff\n", true),
            (
                "CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n",
                false,
            ),
            ("CapEff:\t0000000000001000\n", true),
            ("CapEff:\t0000000000002000\n", false),
            ("", false),
        ] {
            assert_eq!(has_net_admin(status), expected, "{status}");
        }
    }
}
