//! Connections that are opened to obtain a ticket for early data.

use std::sync::Arc;

use courser_http3_tokio::Code;
use courser_quic::VarInt;
use http::Uri;

use super::connect::connect;
use super::core::Core;
use super::error::Error;
use super::link::Link;
use super::origin::Origin;
use super::timing::Timing;

/// The result of [`Client::prepare_early_data`](super::Client::prepare_early_data).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Prepared {
    /// The next request to the server can be sent in early data, if the server has issued a ticket for it.
    Ready,
    /// The client does not [send early data](super::ClientBuilder::early_data), or its versions of HTTP do not
    /// support it.
    Off,
    /// The connection does not use HTTP/3, because TCP won the race or the server does not announce HTTP/3.
    NotHttp3,
    /// The HTTP/3 settings of the server did not arrive in time.
    NoSettings,
}

/// Connects to a server and closes the connection, so that the next one can send early data.
pub(super) async fn prepare(core: &Arc<Core>, uri: &Uri) -> Result<Prepared, Error> {
    let origin = &Origin::of(uri)?;
    let is_possible = core.settings.version.may_use_quic();
    let Some(remembered) = core.early_data.as_ref().filter(|_| is_possible) else {
        return Ok(Prepared::Off);
    };
    let limit = core.settings.connect_timeout;
    let established = connect(core, &core.key(origin, uri, None)?, &mut Timing::new()).await?;
    let Link::Http3(client) = established.link else {
        return Ok(Prepared::NotHttp3);
    };
    let settings = async {
        client.quic().authenticated().await.ok()?;
        let settings = client.settings().await?;
        // The server sends its tickets once it has the client's Finished, which precedes the PING.
        client.quic().ping().await.ok()?;
        Some(settings)
    };
    let settings = tokio::time::timeout(limit, settings).await.ok().flatten();
    if let Some(settings) = settings {
        let server = (origin.host().to_owned(), established.facts.remote.port());
        remembered.put(server, settings);
    }
    let no_error = VarInt::from_u64(Code::NO_ERROR.value()).unwrap_or(VarInt::MAX);
    client.quic().close(no_error, b"");
    Ok(match settings {
        Some(_) => Prepared::Ready,
        None => Prepared::NoSettings,
    })
}
