//! A connection that is made for its ticket, so that the next one can be early.

use std::sync::Arc;

use courser_http3_tokio::Code;
use courser_quic::VarInt;

use super::connect::connect;
use super::core::Core;
use super::error::Error;
use super::link::Link;
use super::origin::Origin;
use super::timing::Timing;

/// Connects to a server and closes the connection, so that the next one can be early. Returns false
/// if that cannot be expected.
pub(super) async fn prepare(core: &Arc<Core>, origin: &Origin) -> Result<bool, Error> {
    let Some(remembered) = &core.early_data else {
        return Ok(false);
    };
    let limit = core.settings.connect_timeout;
    let established = connect(core, &core.key(origin), &mut Timing::new()).await?;
    let Link::Http3(client) = established.link else {
        return Ok(false);
    };
    let learn = async {
        client.quic().authenticated().await.ok()?;
        let settings = client.settings().await?;
        // A server sends its tickets as soon as it has the client's Finished, which precedes the PING.
        client.quic().ping().await.ok()?;
        Some(settings)
    };
    let settings = tokio::time::timeout(limit, learn).await.ok().flatten();
    if let Some(settings) = settings {
        let server = (origin.host().to_owned(), established.facts.remote.port());
        remembered.put(server, settings);
    }
    let no_error = VarInt::from_u64(Code::NO_ERROR.value()).unwrap_or(VarInt::MAX);
    client.quic().close(no_error, b"");
    Ok(settings.is_some())
}
