//! Looks for announcements of HTTP/3: the `alt-svc` field over TCP, and HTTPS records.

use std::net::SocketAddr;
use std::time::Duration;

use courser::client::{Client, HttpVersion, Proxy};
use courser::h3;
use http::{HeaderValue, Request, header};

use crate::probe::recording_verifier::RecordingVerifier;
use crate::probe::requests::USER_AGENT;

/// Returns the `alt-svc` field of a response over TCP.
pub(crate) async fn alt_svc(
    address: SocketAddr,
    url: &str,
    host: &str,
    verifier: &RecordingVerifier,
    limit: Duration,
) -> Result<Option<String>, String> {
    let client = Client::builder()
        .version(HttpVersion::Http2)
        .verifier(verifier.verifier())
        // Redirects would contact other hosts.
        .proxy(Proxy::Direct)
        .timeout(limit)
        .redirects(0)
        // This counts as one handshake.
        .retries(0)
        .decompress(false)
        .resolve(host, address.port(), [address])
        .user_agent(HeaderValue::from_static(USER_AGENT))
        .build()
        .map_err(|error| error.to_string())?;
    let request = Request::head(url)
        .header(header::ACCEPT, "*/*")
        .body(h3::Empty)
        .map_err(|error| error.to_string())?;
    let response = client
        .send(request)
        .await
        .map_err(|error| error.to_string())?;
    let field = response.headers().get(header::ALT_SVC);
    Ok(field.map(|value| {
        String::from_utf8_lossy(value.as_bytes())
            .chars()
            .take(512)
            .collect()
    }))
}

/// The authority of an alternative service (RFC 7838 §3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The host, empty for that of the origin.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Place {
    /// Returns the first place for HTTP/3 in an `alt-svc` field.
    pub(crate) fn of_field(field: &str) -> Option<Self> {
        field.split(',').find_map(|alternative| {
            let quoted = alternative.trim().strip_prefix("h3=\"")?;
            let (authority, _) = quoted.split_once('"')?;
            let (host, port) = authority.rsplit_once(':')?;
            Some(Self {
                host: host.to_owned(),
                port: port.parse().ok().filter(|port| *port > 0)?,
            })
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The HTTPS records of a host.
#[cfg(feature = "dns")]
#[derive(Debug, Default)]
pub(crate) struct HttpsRecords {
    /// The protocols, those of the preferred record first.
    pub(crate) protocols: Vec<String>,
    /// The port of the first record that offers HTTP/3, if it names one.
    pub(crate) port: Option<u16>,
}

/// Returns the HTTPS records of a host.
#[cfg(feature = "dns")]
pub(crate) async fn https_record(
    host: &str,
    port: u16,
    limit: Duration,
) -> Result<HttpsRecords, String> {
    use courser::client::{Resolve as _, SystemResolver};
    let looked_up =
        tokio::time::timeout(limit, SystemResolver::default().services(host, port)).await;
    let records = looked_up.map_err(|_| "no answer in time".to_owned())?;
    let records = records.map_err(|error| error.to_string())?;
    let mut found = HttpsRecords::default();
    for record in records.into_iter().take(8) {
        if found.port.is_none() && record.alpn.iter().any(|name| name == "h3") {
            found.port = record.port;
        }
        found.protocols.extend(record.alpn);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use courser_measure::tls::{self, Identity};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::server::TlsStream;

    use super::*;

    #[test]
    fn places_of_http3_are_found_in_fields() {
        for (field, expected) in [
            ("h3=\":8443\"; ma=1", Some(":8443")),
            ("h2=\":1\", h3=\"alt.test:2\"", Some("alt.test:2")),
            ("h3-29=\":1\"", None),
            ("h3=\":0\"", None),
            ("h3=\":x\"", None),
            ("clear", None),
        ] {
            let place = Place::of_field(field).map(|place| place.to_string());
            assert_eq!(place.as_deref(), expected, "{field}");
        }
    }

    /// SETTINGS without parameters, and RST_STREAM of the first stream with REFUSED_STREAM, which means that the
    /// request was not processed (RFC 9113 §6.4, §6.5, §8.7).
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const REFUSED: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];

    /// The connection preface of a client, and the type of HEADERS (RFC 9113 §3.4, §6.2).
    const PREFACE: usize = 24;
    const HEADERS: u8 = 1;

    /// Refuses the first request on a connection of HTTP/2.
    async fn refuse(mut stream: TlsStream<TcpStream>) -> std::io::Result<()> {
        stream.write_all(SETTINGS).await?;
        stream.flush().await?;
        stream.read_exact(&mut [0; PREFACE]).await?;
        loop {
            let mut header = [0; 9];
            stream.read_exact(&mut header).await?;
            let length = usize::from(header[1]) << 8 | usize::from(header[2]);
            stream.read_exact(&mut vec![0; length]).await?;
            if header[3] == HEADERS {
                stream.write_all(REFUSED).await?;
                stream.flush().await?;
            }
        }
    }

    /// A client may retry a request that was not processed. Retries would cause handshakes that are not counted.
    #[tokio::test]
    async fn refused_request_causes_one_handshake() {
        let identity = Identity::in_memory().expect("random numbers");
        let tls = tls::server(identity, b"h2").expect("its own key");
        let acceptor = TlsAcceptor::from(tls);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let request = async {
            let verifier = RecordingVerifier::new(None).expect("the system's roots");
            let url = format!("https://localhost:{}/", address.port());
            let limit = Duration::from_secs(5);
            alt_svc(address, &url, "localhost", &verifier, limit).await
        };
        let mut handshakes = 0;
        let serving = async {
            loop {
                let (stream, _) = listener.accept().await.expect("a client");
                let stream = acceptor.accept(stream).await.expect("a handshake");
                handshakes += 1;
                tokio::spawn(refuse(stream));
            }
        };
        let response = tokio::select! {
            response = request => response,
            () = serving => unreachable!("it never ends"),
        };
        let error = response.expect_err("refused");
        assert!(error.to_lowercase().contains("refused"), "{error}");
        assert_eq!(handshakes, 1);
    }
}
