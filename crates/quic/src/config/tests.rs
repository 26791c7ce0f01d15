use std::sync::Arc;

use courser_transport::TransportConfig;

use super::*;

#[test]
fn missing_protocol_is_named_with_the_remedy() {
    let config = ServerConfig::dev().expect("the system provides random numbers");
    let error = config.build().expect_err("the protocol is missing");
    assert!(error.to_string().contains("call .alpn("), "{error}");
}

#[test]
fn transport_setting_out_of_range_is_named() {
    let transport = TransportConfig {
        mtu: 100,
        ..TransportConfig::default()
    };
    let config = ClientConfig::dangerous_insecure()
        .expect("TLS can be configured")
        .alpn(["test"])
        .transport_config(transport);
    let error = config.build().expect_err("mtu is too small");
    assert!(error.to_string().contains("mtu"), "{error}");
}

#[test]
fn key_of_another_certificate_is_refused_at_once() {
    let (one, other) = (
        Identity::dev().expect("the system provides random numbers"),
        Identity::dev().expect("the system provides random numbers"),
    );
    let mixed = ServerConfig::with_single_cert(vec![one.certificate()], other.into_tls().key);
    assert!(mixed.is_err());
}

#[test]
fn own_rustls_configuration_keeps_its_protocols() {
    let mut tls = ServerConfig::dev()
        .expect("the system provides random numbers")
        .tls
        .config;
    Arc::make_mut(&mut tls).alpn_protocols = vec![b"mine".to_vec()];
    assert!(ServerConfig::with_rustls(tls).build().is_ok());
}
