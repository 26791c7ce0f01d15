//! UDP proxies: templates, paths, targets, policies, fields of responses and datagrams.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_masque::datagram::{self, Decoded};
use courser_masque::{
    Allowance, Contexts, Limits, Policy, Prefix, ReportedError, Target, Template,
};
use http::{HeaderMap, HeaderValue};

use crate::input::Input;

/// Reads the rest of an input as one of the texts or datagrams of a UDP proxy, as its first byte says. A target that is
/// found must survive another expansion, and no address of this machine may be allowed in any form.
pub fn masque(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    match kind % 6 {
        0 => path(&text),
        1 => template(&text),
        2 => target(&text),
        3 => status(rest),
        4 => datagrams(rest),
        _ => tunnel(rest),
    }
}

fn path(text: &str) {
    for paths in [
        Template::WELL_KNOWN,
        "/m{?target_host,target_port}",
        "/{target_host,target_port}",
    ] {
        let paths = Template::path(paths).expect("a template");
        if let Ok(target) = paths.find(text) {
            assert_eq!(paths.find(&paths.expand(&target)), Ok(target.clone()));
            judge(&target);
        }
    }
}

/// The first line is a template, the second one a target.
fn template(text: &str) {
    let (template, target) = text.split_once('\n').unwrap_or((text, "192.0.2.1:443"));
    let Ok(target) = target.parse::<Target>() else {
        return;
    };
    if let Ok(template) = Template::new(template) {
        assert!(template.expand(&target).starts_with("https://"));
    }
    if let Ok(paths) = Template::path(template) {
        assert_eq!(paths.find(&paths.expand(&target)), Ok(target));
    }
}

fn target(text: &str) {
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target.clone()));
        judge(&target);
    }
    if let Ok(prefix) = text.parse::<Prefix>() {
        assert_eq!(prefix.to_string().parse(), Ok(prefix));
    }
}

fn judge(target: &Target) {
    let Some(address) = target.address() else {
        assert!(target.host().to_string().parse::<IpAddr>().is_err());
        return;
    };
    if let Ok(allowed) = Policy::public_only().judge(address) {
        let ip = allowed.ip();
        assert!(
            !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast(),
            "{ip}"
        );
        assert_eq!(ip, ip.to_canonical());
        let again: SocketAddr = allowed;
        assert_eq!(Policy::public_only().judge(again), Ok(allowed));
    }
}

fn status(bytes: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(bytes) {
        let mut headers = HeaderMap::new();
        headers.insert("proxy-status", value);
        if let Some(reported) = ReportedError::of(&headers) {
            assert!(reported.to_string().len() <= bytes.len() + 3);
        }
    }
}

fn datagrams(bytes: &[u8]) {
    match datagram::decode(Bytes::copy_from_slice(bytes)) {
        Ok(Decoded::Udp(payload)) => {
            let again = datagram::decode(datagram::encode(&payload));
            assert_eq!(again, Ok(Decoded::Udp(payload)));
        }
        Ok(Decoded::Other { context, payload }) => {
            assert!(context > 0 && bytes.ends_with(&payload))
        }
        Err(error) => assert_eq!(error.code(), courser_http3::Code::DATAGRAM_ERROR),
    }
}

/// Contexts and the allowance of a tunnel, in any order.
fn tunnel(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let side = if input.below(2) == 0 {
        Side::Client
    } else {
        Side::Server
    };
    let mut contexts = Contexts::new(side);
    let mut allowance = Allowance::new(&Limits::default(), Time::ZERO);
    let (mut now, mut sent, mut open) = (Time::ZERO, 0, 0_usize);
    while !input.is_empty() {
        match input.below(5) {
            0 => open += usize::from(contexts.allocate().is_ok()),
            1 => open += usize::from(contexts.on_registered(input.number()).is_ok()),
            2 => open -= usize::from(contexts.close(input.number())),
            3 => drop(contexts.on_datagram(input.number())),
            _ => {
                now += std::time::Duration::from_millis(input.short().into());
                let len = usize::from(input.short());
                sent += if allowance.take(now, len) {
                    len as u64
                } else {
                    0
                };
            }
        }
    }
    assert!(open <= 16);
    let seconds = now.as_nanos() / 1_000_000_000;
    assert!(sent <= 64 * 1024 + (seconds + 1) * 1024);
}
