//! Sends requests over the negotiated protocol.

use std::time::Duration;

use courser::{Connection, Side, h3, webtransport};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::time::timeout;

/// A client for the application protocol of a connection.
#[derive(Debug)]
pub(crate) enum RequestClient {
    Http3(h3::Client),
    /// HTTP/0.9 over streams, the protocol of interoperability tests.
    Http09(Connection),
    /// A protocol that this program does not support.
    Other,
}

/// The parts of a response that the report uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: Option<StatusCode>,
    pub(crate) server: Option<String>,
    pub(crate) alt_svc: Option<String>,
    pub(crate) content: u64,
}

/// The values from which requests are built, and their time limit.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    pub(crate) authority: String,
    pub(crate) path: String,
    pub(crate) limit: Duration,
    /// HEAD, or GET for servers that do not support HEAD.
    pub(crate) method: Method,
    /// The length of a field that only pads the request.
    pub(crate) padding: usize,
}

impl RequestClient {
    pub(crate) fn of(connection: &Connection, protocol: &str) -> Self {
        match protocol {
            h3::ALPN => Self::Http3(http3(connection.clone())),
            HTTP_09 => Self::Http09(connection.clone()),
            _ => Self::Other,
        }
    }

    /// Sends a request, and reads the response to its end or to [`MAX_CONTENT`]. Returns `None` if the protocol
    /// is not supported.
    pub(crate) async fn request(
        &self,
        template: &RequestTemplate,
        priority: Option<&'static str>,
    ) -> Option<Result<Answer, String>> {
        let exchange = async {
            match self {
                Self::Http3(client) => Some(over_http3(client, template, priority).await),
                Self::Http09(connection) => Some(over_streams(connection, template).await),
                Self::Other => None,
            }
        };
        let seconds = template.limit.as_secs_f64();
        let late = || Some(Err(format!("no response within {seconds} s")));
        timeout(template.limit, exchange)
            .await
            .unwrap_or_else(|_| late())
    }
}

/// Returns a client that announces WebTransport, as browsers do, and learns the settings of the server for it.
fn http3(connection: Connection) -> h3::Client {
    let mut config = h3::Config::new(Side::Client);
    // There are no other extensions whose numbers it could claim.
    let _ = webtransport::enable(&mut config, Side::Client, webtransport::Config::new());
    h3::Client::with_config(connection, config)
}

async fn over_http3(
    client: &h3::Client,
    template: &RequestTemplate,
    priority: Option<&'static str>,
) -> Result<Answer, String> {
    let mut request = Request::builder()
        .method(template.method.clone())
        .uri(format!("https://{}{}", template.authority, template.path))
        .header(header::USER_AGENT, USER_AGENT);
    if let Some(priority) = priority {
        request = request.header("priority", priority);
    }
    if template.padding > 0 {
        request = request.header("x-courser-probe-padding", "Z".repeat(template.padding));
    }
    let request = request.body(h3::Empty).map_err(|error| error.to_string())?;
    let response = client
        .send(request)
        .await
        .map_err(|error| error.to_string())?;
    let field = |name: &str| {
        let value = response.headers().get(name)?;
        Some(
            String::from_utf8_lossy(value.as_bytes())
                .chars()
                .take(MAX_FIELD)
                .collect(),
        )
    };
    let mut answer = Answer {
        status: Some(response.status()),
        server: field("server"),
        alt_svc: field("alt-svc"),
        content: 0,
    };
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        answer.content += frame.data_ref().map_or(0, |data| data.len() as u64);
        if answer.content >= MAX_CONTENT {
            break;
        }
    }
    Ok(answer)
}

async fn over_streams(
    connection: &Connection,
    template: &RequestTemplate,
) -> Result<Answer, String> {
    let (mut send, mut receive) = connection
        .open_bi()
        .await
        .map_err(|error| error.to_string())?;
    let request = format!("GET {}\r\n", template.path);
    send.write_all(request.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    // The server may have answered and closed the stream already.
    let _ = send.finish();
    let mut content = 0;
    loop {
        match receive.read_chunk(MAX_CHUNK).await {
            Ok(Some(chunk)) => content += chunk.len() as u64,
            Ok(None) => break,
            // Servers reset the stream if the file does not exist, which counts as an answer.
            Err(courser::ReadError::Reset(_)) => break,
            Err(error) => return Err(error.to_string()),
        }
        if content >= MAX_CONTENT {
            break;
        }
    }
    Ok(Answer {
        content,
        ..Answer::default()
    })
}

/// The ALPN name of HTTP/0.9 over streams, the protocol of interoperability tests.
pub(crate) const HTTP_09: &str = "hq-interop";

/// The user agent of all requests, which explains their purpose to operators.
pub const USER_AGENT: &str = concat!(
    "courser-probe/",
    env!("CARGO_PKG_VERSION"),
    " (diagnosis of QUIC; a run makes at most 7 handshakes)"
);

/// The largest number of content bytes that are read from a response (K236).
pub(crate) const MAX_CONTENT: u64 = 1 << 20;
const MAX_CHUNK: usize = 65_536;
/// The largest number of characters of a field that are kept (K236).
const MAX_FIELD: usize = 512;
