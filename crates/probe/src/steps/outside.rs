//! The announcements of HTTP/3: the `alt-svc` field over TCP, and HTTPS records.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser::client::{Client, HttpVersion, Proxy};
use courser::h3;
use http::{HeaderValue, Request, header};

use crate::talk::USER_AGENT;
use crate::trust::Witness;

/// Returns the `alt-svc` field of a response over TCP.
pub(crate) async fn alt_svc(
    address: SocketAddr,
    url: &str,
    host: &str,
    witness: Arc<Witness>,
    limit: Duration,
) -> Result<Option<String>, String> {
    let client = Client::builder()
        .version(HttpVersion::Http2)
        .verifier(witness)
        // Only the host that is named is contacted.
        .proxy(Proxy::Direct)
        .timeout(limit)
        .redirects(0)
        .decompress(false)
        .resolve(host, address.port(), [address.ip()])
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

/// Returns the protocols of the HTTPS records of a host, the preferred record first.
#[cfg(feature = "dns")]
pub(crate) async fn https_record(
    host: &str,
    port: u16,
    limit: Duration,
) -> Result<Vec<String>, String> {
    use courser::client::{Resolve as _, SystemResolver};
    let looked_up =
        tokio::time::timeout(limit, SystemResolver::default().services(host, port)).await;
    let records = looked_up.map_err(|_| "no answer in time".to_owned())?;
    let records = records.map_err(|error| error.to_string())?;
    Ok(records
        .into_iter()
        .take(8)
        .flat_map(|record| record.alpn)
        .collect())
}
