//! Converts the flags to the settings of the client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use courser::client::{ClientBuilder, Family, HttpVersion, Proxy, ScopedIp, TlsVersions};
use courser::{Client, Identity};
use courser_measure::target::{parse_ip, parse_socket_addr};
use courser_measure::{choices, ech, tls};

use super::args::{Arguments, ConnectionArguments};
use super::exit::{
    BAD_OPTION_VALUE, CA_FILE, CLIENT_CERTIFICATE, FAILED_INIT, Failed, TLS, UNUSABLE_CIPHER,
    WRITE_ERROR, chosen_version,
};
use super::paths;
use super::pins;
use super::plan::TokenFile;
use super::zones::Zones;
use crate::transfer::percent_encode;

/// Returns the settings of the client for all transfers.
pub(crate) fn client(
    arguments: &Arguments,
    zones: &Zones,
    tokens: Option<&TokenFile>,
) -> Result<ClientBuilder, Failed> {
    let connection = &arguments.connection;
    let flags = [
        connection.http3,
        connection.http3_only,
        connection.http2,
        connection.http1,
    ];
    let version = match (connection.http2_prior_knowledge, connection.http10) {
        (true, _) => HttpVersion::Http2PriorKnowledge,
        (_, true) => HttpVersion::Http10,
        _ => chosen_version(flags),
    };
    let mut builder = Client::builder()
        .version(version)
        // Redirects are followed by this command, with the rules of curl.
        .redirects(0)
        .early_data(connection.early_data.is_some())
        .decompress(arguments.request.compressed)
        .key_log(std::env::var_os("SSLKEYLOGFILE").is_some())
        .attempt_delay(Duration::from_millis(connection.happy_eyeballs_timeout_ms))
        .connect_timeout(set(connection.connect_timeout).unwrap_or(CONNECT_TIMEOUT));
    if let Some(limit) = connection.expect100_timeout {
        builder = builder.expect_continue_timeout(limit);
    }
    // --header "Expect:" turns the expectation off.
    let headers = &arguments.request.headers;
    if !headers.iter().any(|field| is_named(field, "expect")) {
        builder = builder.expect_continue_above(LARGE_CONTENT);
    }
    builder = paths::settings(builder, &connection.via, connection.scheduler);
    if !connection.quic_version.is_empty() {
        builder = builder.quic_versions(connection.quic_version.iter().copied());
    }
    builder = trust(builder, connection)?;
    builder = places(zones.apply(builder), connection)?;
    builder = sockets(builder, connection)?;
    builder = proxied(builder, connection)?;
    if let Some(tokens) = tokens {
        builder = builder.token_store(tokens.store.clone());
    }
    match &connection.alt_svc {
        Some(path) => builder = builder.alt_svc_file(path),
        // As in curl, the flag decides whether announcements change the version of later transfers.
        None => builder = builder.background_http3(false),
    }
    if let Some(directory) = &arguments.output.qlog {
        let traces = crate::process::RECORDS.traces(directory, None);
        let traces = traces.map_err(|failure| Failed::new(WRITE_ERROR, failure.to_string()))?;
        builder = builder.sinks(traces);
    }
    Ok(builder)
}

fn sockets(
    mut builder: ClientBuilder,
    connection: &ConnectionArguments,
) -> Result<ClientBuilder, Failed> {
    if let Some(path) = &connection.unix_socket {
        builder = builder.unix_socket(path);
    } else if let Some(name) = &connection.abstract_unix_socket {
        builder = builder.unix_socket(format!("\0{name}"));
    }
    if let Some(time) = set(connection.keepalive_time) {
        builder = builder.tcp_keepalive(time);
    }
    if let Some(text) = &connection.local_port {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        let (Some(first), Some(last)) = (port(first), port(last)) else {
            let text = format!("--local-port '{text}' is not a port or a range such as 4000-4100");
            return Err(Failed::new(FAILED_INIT, text));
        };
        builder = builder.local_ports(first..=last);
    }
    let versions = match (connection.tls13, connection.tls_max.as_deref()) {
        (true, None | Some("1.3" | "default")) => TlsVersions::Only13,
        (false, None | Some("1.3" | "default")) => TlsVersions::All,
        (false, Some("1.2")) => TlsVersions::Only12,
        (true, Some("1.2")) => {
            let text = "--tlsv1.3 and --tls-max 1.2 allow no version of TLS";
            return Err(Failed::new(TLS, text));
        }
        (_, Some(other)) => {
            let text = format!("--tls-max '{other}' is not supported: use 1.2 or 1.3");
            return Err(Failed::new(FAILED_INIT, text));
        }
    };
    if let Some(pins) = &connection.pinnedpubkey {
        builder = builder.public_key_pins(pins::read(pins)?);
    }
    Ok(builder
        .tls_versions(versions)
        .proxy_protocol(connection.haproxy_protocol))
}

fn trust(
    mut builder: ClientBuilder,
    connection: &ConnectionArguments,
) -> Result<ClientBuilder, Failed> {
    if connection.insecure {
        builder = builder.dangerous_insecure();
    } else if connection.cacert.is_some() || connection.capath.is_some() {
        builder = builder.platform_roots(false);
        let mut paths: Vec<PathBuf> = connection.cacert.iter().cloned().collect();
        if let Some(folder) = &connection.capath {
            paths.extend(certificates_in(folder)?);
        }
        for path in paths {
            let certificates = tls::certificates(&path);
            let certificates =
                certificates.map_err(|failure| Failed::new(CA_FILE, failure.to_string()))?;
            for certificate in certificates {
                builder = builder.root(certificate);
            }
        }
    }
    let types = [
        ("--cert-type", &connection.cert_type),
        ("--key-type", &connection.key_type),
    ];
    for (flag, value) in types {
        if let Some(other) = value.as_ref().filter(|it| !it.eq_ignore_ascii_case("PEM")) {
            let text = format!("{flag} '{other}' is not supported: convert it to PEM with openssl");
            return Err(Failed::new(CLIENT_CERTIFICATE, text));
        }
    }
    if let Some(cert) = &connection.cert {
        builder = builder.identity(identity(cert, connection.key.as_deref())?);
    }
    if let Some(value) = &connection.ech {
        let ech = ech::parse(value);
        builder = builder.ech(ech.map_err(|error| Failed::new(FAILED_INIT, error.to_string()))?);
    }
    let (groups, suites) = (&connection.curves, &connection.tls13_ciphers);
    let cryptography = choices::cryptography(groups.as_deref(), suites.as_deref());
    let cryptography =
        cryptography.map_err(|error| Failed::new(UNUSABLE_CIPHER, error.to_string()))?;
    Ok(builder.cryptography(cryptography))
}

/// Reads a client certificate, and its key from the same file unless it is in another.
fn identity(cert: &Path, key: Option<&Path>) -> Result<Identity, Failed> {
    let cert = without_passphrase(cert);
    let identity = Identity::from_pem_files(&cert, key.unwrap_or(&cert));
    identity.map_err(|error| {
        let text = format!("cannot use the client certificate: {error}");
        Failed::new(CLIENT_CERTIFICATE, text)
    })
}

/// Returns the file of --cert without the passphrase after it, as in `FILE:PASSPHRASE`. A key with a passphrase is
/// refused when it is read.
fn without_passphrase(cert: &Path) -> PathBuf {
    let whole = cert.to_string_lossy();
    match whole.rsplit_once(':') {
        Some((file, _)) if !cert.exists() && Path::new(file).exists() => file.into(),
        _ => cert.to_owned(),
    }
}

/// Returns true for `Name: value` with this name.
fn is_named(field: &str, name: &str) -> bool {
    let end = field.find([':', ';']).unwrap_or(field.len());
    field[..end].trim().eq_ignore_ascii_case(name)
}

/// Returns a time unless it is 0, which stands for the default in curl.
pub(super) fn set(time: Option<Duration>) -> Option<Duration> {
    time.filter(|time| !time.is_zero())
}

/// Returns the files of a directory that have certificates in PEM.
fn certificates_in(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        let text = format!("cannot read {}: {error}", folder.display());
        Failed::new(CA_FILE, text)
    };
    let entries = std::fs::read_dir(folder).map_err(|error| failed(&error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let text = std::fs::read(path).unwrap_or_default();
        text.windows(CERTIFICATE.len()).any(|it| it == CERTIFICATE)
    });
    // Directories often have each certificate twice, also under its hash.
    paths.sort();
    match paths.is_empty() {
        true => Err(failed(&"it has no certificates in PEM")),
        false => Ok(paths),
    }
}

fn places(
    mut builder: ClientBuilder,
    connection: &ConnectionArguments,
) -> Result<ClientBuilder, Failed> {
    for rule in &connection.resolve {
        let (host, port, addresses) = resolve_rule(rule)?;
        builder = builder.resolve(&host, port, addresses);
    }
    for rule in &connection.connect_to {
        let [from_host, from_port, to_host, to_port] = connect_to_rule(rule)?;
        let port = |text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| wrong_connect_to(rule)),
        };
        builder = builder.connect_to(
            (from_host.as_deref(), port(&from_port)?),
            (to_host.as_deref(), port(&to_port)?),
        );
    }
    if connection.ipv4 {
        builder = builder.family(Family::V4);
    } else if connection.ipv6 {
        builder = builder.family(Family::V6);
    }
    if let Some(name) = &connection.interface {
        let name = name.trim_start_matches("host!").trim_start_matches("if!");
        builder = match parse_ip(name) {
            Ok(address) => builder.local_address(address),
            Err(_) => builder.interface(name),
        };
    }
    if let Some(url) = connection.doh_url.as_deref().filter(|url| !url.is_empty()) {
        builder = with_dns_over_https(builder, connection, url)?;
    }
    if !connection.dns_servers.is_empty() {
        let servers = connection.dns_servers.iter().map(|text| name_server(text));
        builder = with_name_servers(builder, servers.collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(builder)
}

/// Uses a DNS server over HTTPS.
#[cfg(feature = "dns")]
fn with_dns_over_https(
    builder: ClientBuilder,
    connection: &ConnectionArguments,
    url: &str,
) -> Result<ClientBuilder, Failed> {
    let wrong = |error: &dyn std::fmt::Display| Failed::new(FAILED_INIT, error.to_string());
    let version = match connection.http3 || connection.http3_only {
        true => HttpVersion::Http3,
        false => HttpVersion::Auto,
    };
    let client = trust(Client::builder().version(version), connection)?;
    let client = client.build().map_err(|error| wrong(&error))?;
    let resolver = courser::client::DnsResolver::over_https(client, url);
    Ok(builder.resolver(resolver.map_err(|error| wrong(&error))?))
}

#[cfg(not(feature = "dns"))]
fn with_dns_over_https(
    _: ClientBuilder,
    _: &ConnectionArguments,
    _: &str,
) -> Result<ClientBuilder, Failed> {
    let text = crate::features::missing("a DNS client", "dns");
    Err(Failed::new(super::exit::NOT_BUILT_IN, text))
}

/// Uses these name servers instead of the system's.
#[cfg(feature = "dns")]
fn with_name_servers(
    builder: ClientBuilder,
    servers: Vec<SocketAddr>,
) -> Result<ClientBuilder, Failed> {
    let resolver = courser::client::DnsResolver::new(servers);
    let resolver = resolver.map_err(|error| Failed::new(FAILED_INIT, error.to_string()))?;
    Ok(builder.resolver(resolver))
}

#[cfg(not(feature = "dns"))]
fn with_name_servers(_: ClientBuilder, _: Vec<SocketAddr>) -> Result<ClientBuilder, Failed> {
    let text = crate::features::missing("a DNS client", "dns");
    Err(Failed::new(super::exit::NOT_BUILT_IN, text))
}

/// Parses a rule of --resolve: `[+]host:port:address[,address]`.
fn resolve_rule(rule: &str) -> Result<(String, u16, Vec<ScopedIp>), Failed> {
    let wrong = || {
        let text = format!("--resolve '{rule}' is not host:port:address[,address]");
        Failed::new(BAD_OPTION_VALUE, text)
    };
    let plain = rule.strip_prefix('+').unwrap_or(rule);
    let mut parts = plain.splitn(3, ':');
    let (Some(host), Some(port), Some(addresses)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    let addresses = addresses
        .split(',')
        .map(|address| parse_ip(address.trim_matches(['[', ']'])).map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    Ok((
        host.to_owned(),
        port.parse().map_err(|_| wrong())?,
        addresses,
    ))
}

/// Parses a rule of --connect-to: `host:port:host:port`. Parts may be empty, and IPv6 addresses are in
/// brackets.
fn connect_to_rule(rule: &str) -> Result<[Option<String>; 4], Failed> {
    let mut parts = Vec::new();
    let mut rest = rule;
    loop {
        let end = match rest.strip_prefix('[') {
            Some(inner) => inner
                .find(']')
                .map(|end| end + 2)
                .ok_or_else(|| wrong_connect_to(rule))?,
            None => rest.find(':').unwrap_or(rest.len()),
        };
        let part = rest[..end].trim_matches(['[', ']']);
        parts.push((!part.is_empty()).then(|| part.to_owned()));
        match rest[end..].strip_prefix(':') {
            Some(behind) => rest = behind,
            None if end == rest.len() => break,
            None => return Err(wrong_connect_to(rule)),
        }
    }
    parts.try_into().map_err(|_| wrong_connect_to(rule))
}

fn wrong_connect_to(rule: &str) -> Failed {
    let text = format!("--connect-to '{rule}' is not host:port:otherhost:otherport");
    Failed::new(BAD_OPTION_VALUE, text)
}

fn name_server(text: &str) -> Result<SocketAddr, Failed> {
    let with_port = parse_socket_addr(text).ok();
    let address = with_port.or_else(|| {
        let ip = parse_ip(text.trim_matches(['[', ']'])).ok()?;
        Some(ip.with_port(53))
    });
    address.ok_or_else(|| {
        let text =
            format!("--dns-servers '{text}' is not an address such as 192.0.2.1 or [::1]:53");
        Failed::new(FAILED_INIT, text)
    })
}

/// Sets the proxy, its fields and what it is verified with.
fn proxied(
    mut builder: ClientBuilder,
    connection: &ConnectionArguments,
) -> Result<ClientBuilder, Failed> {
    if let Some(proxy) = proxy(connection) {
        builder = builder.proxy(proxy);
    }
    for field in &connection.proxy_header {
        let Some((name, value)) = field.split_once(':') else {
            let text = format!("--proxy-header '{field}' is not a field such as 'name: value'");
            return Err(Failed::new(FAILED_INIT, text));
        };
        builder = builder.proxy_header(name.trim(), value.trim());
    }
    if let Some(cert) = &connection.proxy_cert {
        builder = builder.proxy_identity(identity(cert, connection.proxy_key.as_deref())?);
    }
    if connection.proxy_insecure {
        return Ok(builder.dangerous_insecure_proxy());
    }
    if let Some(path) = &connection.proxy_cacert {
        let certificates = tls::certificates(path);
        let certificates =
            certificates.map_err(|failure| Failed::new(CA_FILE, failure.to_string()))?;
        builder = certificates
            .into_iter()
            .fold(builder, ClientBuilder::proxy_root);
    }
    Ok(builder)
}

fn proxy(connection: &ConnectionArguments) -> Option<Proxy> {
    let except = connection.noproxy.clone().unwrap_or_default();
    let socks = [
        ("socks4", &connection.socks4),
        ("socks4a", &connection.socks4a),
        ("socks5", &connection.socks5),
        ("socks5h", &connection.socks5_hostname),
    ];
    let socks = socks.iter().find_map(|(scheme, host)| {
        let host = host.as_ref()?;
        Some(format!("{scheme}://{host}"))
    });
    match connection.proxy.clone().or(socks).as_deref() {
        // As with curl, an empty proxy means a direct connection.
        Some("") => Some(Proxy::Direct),
        _ if except == "*" => Some(Proxy::Direct),
        Some(url) => {
            let (scheme, place) = url.split_once("://").unwrap_or(("http", url));
            let url = match &connection.proxy_user {
                Some(user) => {
                    let place = place.rsplit_once('@').map_or(place, |(_, host)| host);
                    let (user, password) = user.split_once(':').unwrap_or((user, ""));
                    let [user, password] =
                        [user, password].map(|text| percent_encode(text.as_bytes()));
                    format!("{scheme}://{user}:{password}@{place}")
                }
                None => format!("{scheme}://{place}"),
            };
            Some(Proxy::Url { url, except })
        }
        None => None,
    }
}

/// The time limit for connecting, as in curl.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest content that is sent over HTTP/1.1 without an expectation, as in curl.
const LARGE_CONTENT: u64 = 1 << 20;
/// The first line of a certificate in PEM.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_resolve_are_read() {
        let (host, port, addresses) = resolve_rule("+a.test:443:192.0.2.1,[::1]").expect("a rule");
        assert_eq!((host.as_str(), port), ("a.test", 443));
        assert_eq!(addresses.len(), 2);
        let (_, _, addresses) = resolve_rule("a.test:443:[fe80::1%2]").expect("a zone");
        assert_eq!(addresses[0].to_string(), "fe80::1%2");
        for rule in ["a:443", "a:x:::1", "a:443:b", ""] {
            assert_eq!(resolve_rule(rule).expect_err(rule).code, BAD_OPTION_VALUE);
        }
    }

    #[test]
    fn rules_of_connect_to_may_leave_parts_empty() {
        let rule = |text| connect_to_rule(text).map(|parts| parts.map(Option::unwrap_or_default));
        assert_eq!(rule("a:1:b:2"), Ok(["a", "1", "b", "2"].map(str::to_owned)));
        assert_eq!(rule("::b:"), Ok(["", "", "b", ""].map(str::to_owned)));
        assert_eq!(
            rule("::[::1]:44"),
            Ok(["", "", "::1", "44"].map(str::to_owned))
        );
        for wrong in ["", "a", "a:1:b", "a:1:b:2:3", "[::1", "[::1]x:1:b:2"] {
            assert!(connect_to_rule(wrong).is_err(), "{wrong}");
        }
    }
}
