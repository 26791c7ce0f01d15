//! DNS queries over HTTPS (RFC 8484).

use std::io;
use std::time::Duration;

use bytes::Bytes;
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, Record, RecordType};
use http::header::{self, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};

use super::super::Client;

/// Sends queries to a server over HTTPS.
#[derive(Clone, Debug)]
pub(super) struct OverHttps {
    client: Client,
    uri: Uri,
    /// The longest time of a query.
    limit: Duration,
}

impl OverHttps {
    pub(super) fn new(client: Client, url: &str, limit: Duration) -> io::Result<Self> {
        let wrong = |why: String| {
            let text = format!("'{url}' is not the URL of a DNS server: {why}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let uri: Uri = url.parse().map_err(|error| wrong(format!("{error}")))?;
        // RFC 8484 §5: queries are never sent without TLS.
        if uri.scheme_str() != Some("https") {
            return Err(wrong("it does not begin with https://".to_owned()));
        }
        Ok(Self { client, uri, limit })
    }

    /// Returns the records of a name; none if it has none of this type.
    pub(super) async fn lookup(&self, name: Name, kind: RecordType) -> io::Result<Vec<Record>> {
        let mut query = Message::query();
        // RFC 8484 §4.1: so that responses can be cached.
        query.metadata.id = 0;
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(name, kind));
        let query = query.to_vec().map_err(io::Error::other)?;
        let answer = self.exchange(query).await?;
        let answer = Message::from_vec(&answer).map_err(|error| {
            let text = format!("the response of {} is no DNS message: {error}", self.uri);
            io::Error::other(text)
        })?;
        match answer.metadata.response_code {
            ResponseCode::NoError => Ok(answer.answers),
            ResponseCode::NXDomain => {
                let text = "no such name";
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
            code => Err(io::Error::other(format!("the DNS server failed: {code}"))),
        }
    }

    async fn exchange(&self, query: Vec<u8>) -> io::Result<Bytes> {
        let mut request = Request::new(Full::new(Bytes::from(query)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        for name in [header::CONTENT_TYPE, header::ACCEPT] {
            let kind = HeaderValue::from_static(DNS_MESSAGE);
            request.headers_mut().insert(name, kind);
        }
        let failed = |why: String| io::Error::other(format!("DNS over HTTPS: {why}"));
        let exchange = async {
            let response = self.client.send(request).await;
            let response = response.map_err(|error| failed(error.to_string()))?;
            let status = response.status();
            if !status.is_success() {
                return Err(failed(format!("{} responded with {status}", self.uri)));
            }
            let body = Limited::new(response.into_body(), MAX_MESSAGE)
                .collect()
                .await;
            let body = body.map_err(|error| failed(error.to_string()))?;
            Ok(body.to_bytes())
        };
        let limited = tokio::time::timeout(self.limit, exchange).await;
        limited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

const DNS_MESSAGE: &str = "application/dns-message";
/// The largest size of a DNS message (RFC 8484 §6, limit K480).
const MAX_MESSAGE: usize = 65_535;
