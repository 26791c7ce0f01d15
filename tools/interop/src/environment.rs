//! The environment variables with which the runner configures an end.

use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;

use courser_measure::Failure;
use url::Url;

use crate::client::ClientPlan;
use crate::server::ServerPlan;
use crate::test::Test;
use crate::webtransport::{SessionClientPlan, SessionServerPlan, SessionTest};

/// The variables of a process, or others in tests.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Makes the settings of a server from its environment: `TESTCASE`, and as extensions for runs
/// without a container `LISTEN`, `PREFERRED`, `WWW` and `CERTS`. Returns `None` if the test is not supported.
///
/// # Errors
/// Returns an error if a variable cannot be used.
pub fn server_plan(variables: Lookup<'_>) -> Result<Option<ServerPlan>, Failure> {
    let Some(test) = test(variables)? else {
        return Ok(None);
    };
    let listen = match text(variables, "LISTEN")? {
        Some(text) => parse("LISTEN", &text)?,
        None => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 443)),
    };
    let (preferred_v4, preferred_v6) = preferred(variables)?;
    let certificates = folder(variables, "CERTS", "/certs");
    Ok(Some(ServerPlan {
        test,
        listen,
        preferred_v4,
        preferred_v6,
        root: folder(variables, "WWW", "/www"),
        chain: certificates.join("cert.pem"),
        key: certificates.join("priv.key"),
        sinks: None,
    }))
}

/// Makes the settings of a client from its environment: `TESTCASE` and `REQUESTS`, and as extensions
/// `DOWNLOADS` and `PROTOCOL`, with which `h3` files travel over HTTP/3 in all tests. Returns `None` if the
/// test is not supported.
///
/// # Errors
/// Returns an error if a variable cannot be used.
pub fn client_plan(variables: Lookup<'_>) -> Result<Option<ClientPlan>, Failure> {
    let Some(test) = test(variables)? else {
        return Ok(None);
    };
    let urls = urls(variables)?;
    let always_http3 = match text(variables, "PROTOCOL")?.as_deref() {
        None => false,
        Some("h3") => true,
        Some(other) => {
            return Err(Failure::new(format!(
                "cannot use '{other}' in PROTOCOL: only h3 is known"
            )));
        }
    };
    Ok(Some(ClientPlan {
        test,
        urls,
        downloads: folder(variables, "DOWNLOADS", "/downloads"),
        always_http3,
        sinks: None,
    }))
}

/// Makes the settings of a server of sessions: `TESTCASE`, `PROTOCOLS`, `REQUESTS`, and the extensions of
/// [`server_plan`] and `DOWNLOADS`. Returns `None` if the test is none of WebTransport.
///
/// # Errors
/// Returns an error if a variable cannot be used.
pub fn session_server_plan(variables: Lookup<'_>) -> Result<Option<SessionServerPlan>, Failure> {
    let Some((test, protocols)) = session_test(variables, true)? else {
        return Ok(None);
    };
    let listen = match text(variables, "LISTEN")? {
        Some(text) => parse("LISTEN", &text)?,
        None => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 443)),
    };
    let certificates = folder(variables, "CERTS", "/certs");
    let requests = text(variables, "REQUESTS")?.unwrap_or_default();
    Ok(Some(SessionServerPlan {
        test,
        listen,
        protocols,
        requests: requests.split_whitespace().map(ToOwned::to_owned).collect(),
        root: folder(variables, "WWW", "/www"),
        downloads: folder(variables, "DOWNLOADS", "/downloads"),
        chain: certificates.join("cert.pem"),
        key: certificates.join("priv.key"),
        sinks: None,
    }))
}

/// Makes the settings of a client of sessions: `TESTCASE`, `PROTOCOLS` and `REQUESTS`, and as extensions `WWW` and
/// `DOWNLOADS`. Returns `None` if the test is none of WebTransport.
///
/// # Errors
/// Returns an error if a variable cannot be used.
pub fn session_client_plan(variables: Lookup<'_>) -> Result<Option<SessionClientPlan>, Failure> {
    let Some((test, protocols)) = session_test(variables, false)? else {
        return Ok(None);
    };
    Ok(Some(SessionClientPlan {
        test,
        urls: urls(variables)?,
        protocols,
        root: folder(variables, "WWW", "/www"),
        downloads: folder(variables, "DOWNLOADS", "/downloads"),
        sinks: None,
    }))
}

/// Returns the test of WebTransport, with the application protocols.
fn session_test(
    variables: Lookup<'_>,
    is_server: bool,
) -> Result<Option<(SessionTest, Vec<String>)>, Failure> {
    let protocols = text(variables, "PROTOCOLS")?;
    let Some(name) = text(variables, "TESTCASE")? else {
        return Ok(None);
    };
    let test = SessionTest::from_name(&name, is_server, protocols.is_some());
    let protocols = protocols.unwrap_or_default();
    let names = protocols.split_whitespace().map(ToOwned::to_owned);
    Ok(test.map(|test| (test, names.collect())))
}

fn urls(variables: Lookup<'_>) -> Result<Vec<Url>, Failure> {
    let requests = text(variables, "REQUESTS")?.unwrap_or_default();
    let urls: Result<Vec<Url>, Failure> = requests
        .split_whitespace()
        .map(|url| parse("REQUESTS", url))
        .collect();
    let urls = urls?;
    if urls.is_empty() {
        return Err(Failure::new(
            "REQUESTS is empty: set it to the URLs of files",
        ));
    }
    Ok(urls)
}

/// Returns the addresses in `PREFERRED`, which are separated by spaces: at most one of each family.
fn preferred(
    variables: Lookup<'_>,
) -> Result<(Option<SocketAddrV4>, Option<SocketAddrV6>), Failure> {
    let text = text(variables, "PREFERRED")?.unwrap_or_default();
    let (mut v4, mut v6) = (None, None);
    for address in text.split_whitespace() {
        let is_second = match parse("PREFERRED", address)? {
            SocketAddr::V4(address) => v4.replace(address).is_some(),
            SocketAddr::V6(address) => v6.replace(address).is_some(),
        };
        if is_second {
            return Err(Failure::new(format!(
                "cannot use '{address}' in PREFERRED: it is the second address of its family"
            )));
        }
    }
    Ok((v4, v6))
}

fn test(variables: Lookup<'_>) -> Result<Option<Test>, Failure> {
    let name = text(variables, "TESTCASE")?;
    let name = name.ok_or_else(|| {
        Failure::new("TESTCASE is not set: set it to the name of a test, such as handshake")
    })?;
    Ok(Test::from_name(&name))
}

fn text(variables: Lookup<'_>, name: &str) -> Result<Option<String>, Failure> {
    let value = variables(name).filter(|value| !value.is_empty());
    value
        .map(OsString::into_string)
        .transpose()
        .map_err(|value| Failure::new(format!("{name} is not UTF-8: {}", value.display())))
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, Failure> {
    text.parse()
        .map_err(|error| Failure::new(format!("cannot use '{text}' in {name}: {error}")))
}

fn folder(variables: Lookup<'_>, name: &str, default: &str) -> PathBuf {
    variables(name).map_or_else(|| PathBuf::from(default), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn lookup(variables: Variables) -> impl Fn(&str) -> Option<OsString> {
        |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        }
    }

    #[test]
    fn server_of_the_container_listens_on_port_443() {
        let variables = lookup(&[("TESTCASE", "retry")]);
        let plan = server_plan(&variables).expect("usable").expect("supported");
        assert_eq!(plan.test, Test::Retry);
        assert_eq!(plan.listen, "[::]:443".parse().expect("an address"));
        assert_eq!(plan.root, PathBuf::from("/www"));
        assert_eq!(plan.key, PathBuf::from("/certs/priv.key"));
    }

    #[test]
    fn server_announces_one_preferred_address_of_each_family() {
        let (v4, v6) = ("193.167.100.101:443", "[fd00:cafe:cafe:100::101]:443");
        let cases: [(Variables, [Option<&str>; 2]); 4] = [
            (&[], [None, None]),
            (&[("PREFERRED", "193.167.100.101:443")], [Some(v4), None]),
            (
                &[("PREFERRED", "[fd00:cafe:cafe:100::101]:443")],
                [None, Some(v6)],
            ),
            (
                &[(
                    "PREFERRED",
                    "[fd00:cafe:cafe:100::101]:443 193.167.100.101:443",
                )],
                [Some(v4), Some(v6)],
            ),
        ];
        for (variables, [v4, v6]) in cases {
            let variables = lookup(variables);
            let (found_v4, found_v6) = preferred(&variables).expect("usable");
            assert_eq!(found_v4, v4.map(|text| text.parse().expect("an address")));
            assert_eq!(found_v6, v6.map(|text| text.parse().expect("an address")));
        }
    }

    #[test]
    fn unusable_preferred_addresses_are_named() {
        let cases: [(Variables, &str); 3] = [
            (
                &[("PREFERRED", "192.0.2.1:443 192.0.2.2:443")],
                "'192.0.2.2:443' in PREFERRED: it is the second",
            ),
            (
                &[("PREFERRED", "[::1]:443 [::1]:443")],
                "'[::1]:443' in PREFERRED: it is the second",
            ),
            (
                &[("PREFERRED", "192.0.2.1:443 192.0.2.2")],
                "'192.0.2.2' in PREFERRED",
            ),
        ];
        for (variables, message) in cases {
            let variables = lookup(variables);
            let error = preferred(&variables).expect_err("unusable").to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn client_reads_all_requests() {
        let variables = lookup(&[
            ("TESTCASE", "transfer"),
            ("REQUESTS", "https://server4:443/a  https://server4:443/b"),
        ]);
        let plan = client_plan(&variables).expect("usable").expect("supported");
        let paths: Vec<&str> = plan.urls.iter().map(Url::path).collect();
        assert_eq!(paths, ["/a", "/b"]);
        assert_eq!(plan.downloads, PathBuf::from("/downloads"));
        assert!(!plan.always_http3);
    }

    #[test]
    fn protocol_h3_selects_http3_in_all_tests() {
        let variables = lookup(&[
            ("TESTCASE", "transfer"),
            ("REQUESTS", "https://127.0.0.1:443/a"),
            ("PROTOCOL", "h3"),
        ]);
        let plan = client_plan(&variables).expect("usable").expect("supported");
        assert!(plan.always_http3);
    }

    #[test]
    fn unknown_test_is_unsupported_before_anything_else() {
        let variables = lookup(&[("TESTCASE", "teleport"), ("LISTEN", "nowhere")]);
        assert!(matches!(server_plan(&variables), Ok(None)));
        assert!(matches!(client_plan(&variables), Ok(None)));
    }

    #[test]
    fn unusable_variables_are_named() {
        let cases: [(Variables, &str); 4] = [
            (
                &[
                    ("TESTCASE", "ecn"),
                    ("REQUESTS", "https://[::1]/a"),
                    ("PROTOCOL", "h2"),
                ],
                "'h2' in PROTOCOL",
            ),
            (&[], "TESTCASE"),
            (&[("TESTCASE", "ecn")], "REQUESTS is empty"),
            (
                &[("TESTCASE", "ecn"), ("REQUESTS", "not a url")],
                "'not' in REQUESTS",
            ),
        ];
        for (variables, message) in cases {
            let variables = lookup(variables);
            let error = client_plan(&variables).err().expect("unusable").to_string();
            assert!(error.contains(message), "{error}");
        }
        let variables = lookup(&[("TESTCASE", "ecn"), ("LISTEN", "443")]);
        let error = server_plan(&variables).err().expect("unusable").to_string();
        assert!(error.contains("'443' in LISTEN"), "{error}");
    }
}
