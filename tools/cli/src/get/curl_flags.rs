//! Flags of curl that `get` ignores or refuses.

/// Returns true for a flag without an effect here, which scripts may use.
pub(super) fn is_ignored(name: &str) -> bool {
    let name = name.strip_prefix("no-").unwrap_or(name);
    IGNORED.contains(&name)
}

/// Returns true if a flag that `get` does not have takes a value.
pub(super) fn takes_value(name: &str) -> bool {
    IGNORED_WITH_VALUE.contains(&name)
}

/// Returns the long name of a short flag of curl that `get` does not have.
pub(super) fn long_of(letter: char) -> Option<&'static str> {
    let found = SHORT.iter().find(|(short, _)| *short == letter);
    found.map(|(_, long)| *long)
}

/// Returns the message for a flag of curl that `get` does not have; `None` if curl does not have it either.
pub(super) fn refusal(name: &str) -> Option<String> {
    let positive = name.strip_prefix("no-").unwrap_or(name);
    let listed = |names: &[&str]| names.contains(&name) || names.contains(&positive);
    for (names, why) in REFUSED {
        if listed(names) {
            return Some(format!(
                "'courser get' does not have curl's flag --{name}: {why}"
            ));
        }
    }
    None
}

/// Flags whose effect is the default, concerns other protocols, or is only visible in packets.
const IGNORED: &[&str] = &[
    "alpn",
    "append",
    "basic",
    "pass",
    "buffer",
    "ca-native",
    "compressed-ssh",
    "disable",
    "false-start",
    "keepalive",
    "npn",
    "progress-bar",
    "proxy-basic",
    "proxy-ca-native",
    "proxy-tlsv1",
    "random-file",
    "egd-file",
    "sessionid",
    "socks5-basic",
    "ssl",
    "ssl-allow-beast",
    "ssl-no-revoke",
    "ssl-reqd",
    "ssl-revoke-best-effort",
    "sslv2",
    "sslv3",
    "styled-output",
    "suppress-connect-headers",
    "tcp-fastopen",
    "tcp-nodelay",
    "tlsv1",
    "tlsv1.0",
    "tlsv1.1",
    "tlsv1.2",
    "parallel-immediate",
    "trace-time",
    "trace-ids",
    "metalink",
];
const IGNORED_WITH_VALUE: &[&str] = &["random-file", "egd-file", "pass"];
const SHORT: &[(char, &str)] = &[
    ('#', "progress-bar"),
    (':', "next"),
    ('1', "tlsv1"),
    ('2', "sslv2"),
    ('3', "sslv3"),
    ('B', "use-ascii"),
    ('M', "manual"),
    ('N', "no-buffer"),
    ('P', "ftp-port"),
    ('Q', "quote"),
    ('a', "append"),
    ('l', "list-only"),
    ('p', "proxytunnel"),
    ('q', "disable"),
    ('t', "telnet-option"),
];
/// Flags that are refused, by their reason.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "crlf",
            "disable-eprt",
            "disable-epsv",
            "ftp-account",
            "ftp-alternative-to-user",
            "ftp-create-dirs",
            "ftp-method",
            "ftp-pasv",
            "ftp-port",
            "ftp-pret",
            "ftp-skip-pasv-ip",
            "ftp-ssl-ccc",
            "ftp-ssl-ccc-mode",
            "ftp-ssl-control",
            "hostpubmd5",
            "hostpubsha256",
            "krb",
            "list-only",
            "login-options",
            "mail-auth",
            "mail-from",
            "mail-rcpt",
            "mail-rcpt-allowfails",
            "pubkey",
            "quote",
            "sasl-authzid",
            "sasl-ir",
            "telnet-option",
            "tftp-blksize",
            "tftp-no-options",
            "use-ascii",
        ],
        "it concerns protocols other than HTTP",
    ),
    (
        &[
            "delegation",
            "negotiate",
            "ntlm",
            "ntlm-wb",
            "proxy-anyauth",
            "proxy-digest",
            "proxy-negotiate",
            "proxy-ntlm",
            "proxy-service-name",
            "service-name",
            "socks5-gssapi",
            "socks5-gssapi-nec",
            "socks5-gssapi-service",
        ],
        "NTLM and Kerberos are not supported, and proxies are authenticated with Basic only",
    ),
    (
        &[
            "tlsauthtype",
            "tlspassword",
            "tlsuser",
            "proxy-tlsauthtype",
            "proxy-tlspassword",
            "proxy-tlsuser",
        ],
        "TLS-SRP is not supported: use a client certificate (--cert)",
    ),
    (
        &["ciphers", "proxy-ciphers", "proxy-tls13-ciphers"],
        "only the suites of TLS 1.3 can be chosen: use --tls13-ciphers",
    ),
    (
        &["engine", "proxy-cert-type", "proxy-key-type", "proxy-pass"],
        "certificates and keys are read as PEM without a passphrase: convert them with openssl",
    ),
    (
        &[
            "proxy-capath",
            "proxy-crlfile",
            "proxy-pinnedpubkey",
            "proxy-ssl-allow-beast",
            "proxy-ssl-auto-client-cert",
        ],
        "an https proxy is verified with the settings for servers (--cacert, --insecure)",
    ),
    (
        &["doh-cert-status", "doh-insecure"],
        "a DNS server over HTTPS is verified with the settings for servers (--cacert, --insecure)",
    ),
    (
        &["dns-interface", "dns-ipv4-addr", "dns-ipv6-addr"],
        "the source of DNS queries cannot be chosen: use --interface",
    ),
    (
        &["cert-status", "crlfile", "ssl-auto-client-cert"],
        "the revocation of certificates is not checked",
    ),
    (
        &["anyauth", "digest"],
        "servers are authenticated to with Basic and Bearer only: use --user or --oauth2-bearer",
    ),
    (
        &["trace-config"],
        "--trace shows messages, --qlog traces QUIC, and SSLKEYLOGFILE lets Wireshark decrypt a capture",
    ),
    (
        &["http0.9"],
        "responses of HTTP/0.9 are not accepted, because any text would be one",
    ),
    (
        &["preproxy", "proxy1.0", "proxytunnel"],
        "a proxy is used with CONNECT for https URLs and with absolute targets for http URLs",
    ),
    (
        &[
            "aws-sigv4",
            "ignore-content-length",
            "ipfs-gateway",
            "libcurl",
            "manual",
            "raw",
            "tr-encoding",
            "xattr",
            "create-file-mode",
            "disallow-username-in-url",
            "http-proxy-tunnel",
            "mptcp",
            "variable",
            "ip-tos",
            "vlan-priority",
            "sigalgs",
            "skip-existing",
            "out-null",
            "dump-ca-embed",
        ],
        "it is not built",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flags_are_known_by_their_long_names() {
        for (_, long) in SHORT {
            assert!(
                *long == "next" || is_ignored(long) || refusal(long).is_some(),
                "{long}"
            );
        }
    }

    #[test]
    fn no_flag_is_both_ignored_and_refused() {
        for name in IGNORED {
            assert_eq!(refusal(name), None);
        }
    }
}
