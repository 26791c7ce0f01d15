//! Honest clients: their configuration, endpoints, requests and errors.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use courser::{Endpoint, h3};
use courser_tls::rustls::client::Resumption;
use courser_tls::{ClientOptions, Trust};
use http::Request;
use http_body_util::{BodyExt as _, Empty};

use crate::process::SMALL;

/// Returns the TLS configuration of honest clients. They never resume sessions, so that every
/// handshake is complete.
pub(crate) fn config() -> Result<courser::ClientConfig, String> {
    let options = ClientOptions {
        resumption: Resumption::disabled(),
        ..ClientOptions::new(Trust::AnyServer, vec![b"h3".to_vec()])
    };
    let tls = courser_tls::client_config(options).map_err(|error| error.to_string())?;
    Ok(courser::ClientConfig::with_rustls(tls).token_store(None))
}

/// Creates an endpoint with its own port.
pub(crate) fn endpoint(config: &courser::ClientConfig) -> Result<Endpoint, String> {
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .map_err(|error| format!("cannot open a socket: {error}"))?;
    endpoint.set_default_client_config(config.clone());
    Ok(endpoint)
}

/// Requests the small file and checks its content.
pub(super) async fn fetch(client: &h3::Client) -> Result<(), String> {
    let request = Request::get("https://localhost/")
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(label)?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()));
    }
    let body = response.into_body().collect().await.map_err(label)?;
    let bytes = body.to_bytes();
    if bytes.len() != SMALL || bytes.iter().any(|byte| *byte != b'x') {
        return Err("wrong bytes".to_owned());
    }
    Ok(())
}

/// Returns a short text for an error.
pub(super) fn label(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.chars().take(MAX_LABEL).collect()
}

/// The largest length of a label in bytes. Errors are counted by their labels.
const MAX_LABEL: usize = 80;
