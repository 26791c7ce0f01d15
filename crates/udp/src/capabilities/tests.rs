use super::*;

fn able() -> Capabilities {
    Capabilities {
        gso_segments: 64,
        gro: true,
        ecn: true,
        pktinfo: true,
        receive_buffer: BUFFER_WANTED,
        receive_buffer_wanted: BUFFER_WANTED,
        send_buffer: BUFFER_WANTED,
        send_buffer_wanted: BUFFER_WANTED,
        warnings: Vec::new(),
    }
}

#[test]
fn capable_machine_has_no_warnings() {
    assert_eq!(able().find_warnings(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn small_receive_buffer_names_the_command() {
    let small = Capabilities {
        receive_buffer: 212_992,
        ..able()
    };
    assert_eq!(
        small.find_warnings(),
        [
            "net.core.rmem_max is 212992, bulk receive will drop packets: \
          sysctl -w net.core.rmem_max=7340032"
        ]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn small_send_buffer_names_the_command() {
    let small = Capabilities {
        send_buffer: 212_992,
        ..able()
    };
    let warnings = small.find_warnings();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].ends_with("sysctl -w net.core.wmem_max=7340032"),
        "{warnings:?}"
    );
}

#[test]
fn missing_offloads_are_named() {
    let plain = Capabilities {
        gso_segments: 1,
        gro: false,
        ..able()
    };
    let warnings = plain.find_warnings();
    assert!(warnings[0].contains("GSO"), "{warnings:?}");
    assert!(warnings[1].contains("GRO"), "{warnings:?}");
}
