//! The server's part of a measurement of datagrams.

use courser_measure::Failure;

use super::flow;
use super::message::{Accepted, Lines, Start, VERSION, line};
use crate::carrier::{Carrier, Sending as _};

/// Serves a measurement of datagrams. `start` contains the bytes of the request that were read already.
/// `on_sent` and `on_received` are called with the size of each datagram.
pub(crate) async fn serve<C: Carrier>(
    carrier: &C,
    mut send: C::Sending,
    receive: C::Receiving,
    start: &[u8],
    on_sent: impl Fn(usize),
    on_received: impl Fn(usize),
) -> Result<(), Failure> {
    let mut lines = Lines::new(start, receive);
    let start: Start = lines.next().await?;
    let refused = start.refusal();
    let is_refused = refused.is_some();
    let accepted = Accepted {
        version: VERSION,
        refused,
    };
    send.write_all(&line(&accepted)).await?;
    if is_refused {
        return send.finish();
    }
    let download = async {
        if start.downloads() {
            let ended = flow::send(carrier, &start, on_sent).await?;
            send.write_all(&line(&ended)).await?;
        }
        Ok::<_, Failure>(())
    };
    let upload = async {
        if !start.uploads() {
            return Ok(None);
        }
        let counts = flow::receive(carrier, lines.next(), on_received).await?;
        Ok::<_, Failure>(Some(counts))
    };
    let ((), received) = tokio::try_join!(download, upload)?;
    if let Some((_, counted)) = received {
        send.write_all(&line(&counted)).await?;
    }
    send.finish()
}
