use super::*;

#[test]
fn edges_run_down() {
    assert!(is_allowed("transport", "wire"));
    assert!(is_allowed("courser", "udp"));
    assert!(is_allowed("courser", "client"));
    assert!(is_allowed("server", "http3-tokio"));
    assert!(is_allowed("http3-tokio", "quic"));
    assert!(!is_allowed("wire", "transport"));
    assert!(!is_allowed("recovery", "udp"));
    assert!(!is_allowed("quic", "http3-tokio"));
    assert!(!is_allowed("server", "client"));
}

#[test]
fn a_crate_may_name_itself() {
    assert!(is_allowed("hyperium-h3", "hyperium-h3"));
    assert!(!is_allowed("hyperium-h3", "sim"));
}

#[test]
fn only_the_named_edges_run_sideways() {
    assert!(is_allowed("tls", "crypto"));
    assert!(is_allowed("telemetry", "wire"));
    assert!(!is_allowed("crypto", "tls"));
    assert!(!is_allowed("wire", "telemetry"));
    assert!(!is_allowed("cli", "bench"));
}

#[test]
fn a_crate_without_a_layer_may_depend_on_nothing() {
    assert_eq!(layer_of("attic"), None);
    assert!(!is_allowed("attic", "base"));
}
