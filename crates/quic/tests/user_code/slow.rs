//! A value that is slow to drop delays only its own connection.

use std::sync::mpsc::{Receiver, Sender, channel};

use super::{Bytes, Connection, Duration, Result, Shared, client_config, watched};
use courser::{Endpoint, Identity, ServerConfig};

/// A buffer whose drop blocks until the test releases it.
struct Slow {
    content: Vec<u8>,
    began: Sender<()>,
    is_released: Shared<Receiver<()>>,
}

impl AsRef<[u8]> for Slow {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.began.send(());
        // A dropped sender releases it too.
        let _ = self
            .is_released
            .lock()
            .expect("no thread has panicked")
            .recv();
    }
}

async fn exchange(client: &Connection, server: &Connection) -> Result {
    let (mut send, mut receive) = client.open_bi().await?;
    send.write_all(b"ping").await?;
    send.finish()?;
    let (mut reply, mut request) = server.accept_bi().await?;
    assert_eq!(request.read_to_end(10).await?, b"ping");
    reply.write_all(b"pong").await?;
    reply.finish()?;
    assert_eq!(receive.read_to_end(10).await?, b"pong");
    Ok(())
}

/// The tasks of the first connection wait, so that the driver learns of the acknowledgement. If it
/// dropped the buffer, the second connection would never get an answer.
#[test]
fn buffer_that_is_slow_to_drop_delays_no_other_connection() {
    watched(|| async {
        let identity = Identity::dev()?;
        let config = ServerConfig::with_identity(&identity)?.alpn(["example"]);
        let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
        let client = Endpoint::client("127.0.0.1:0".parse()?)?;
        let mut pairs = Vec::new();
        for _ in 0..2 {
            let config = client_config(&identity)?;
            let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
            let incoming = server.accept().await.ok_or("closed")?;
            let (client, server) = tokio::join!(connecting, incoming.into_future());
            pairs.push((client?, server?));
        }
        let [(slow, slow_peer), (other, other_peer)] = &pairs[..] else {
            return Err("two pairs".into());
        };
        let (began, has_begun) = channel();
        let (release, is_released) = channel();
        let is_released = Shared::new(std::sync::Mutex::new(is_released));
        let chunk = move |len| {
            Bytes::from_owner(Slow {
                content: vec![1; len],
                began: began.clone(),
                is_released: is_released.clone(),
            })
        };
        let mut stream = slow.open_uni().await?;
        // One call: a second one that finds an acknowledgement would drop the buffer itself.
        let mut chunks = [chunk(20_000), chunk(20_000), chunk(20_000)];
        stream.write_all_chunks(&mut chunks).await?;
        let mut received = slow_peer.accept_uni().await?;
        received.read_exact(&mut [0; 60_000]).await?;
        while has_begun.try_recv().is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..20 {
            exchange(other, other_peer).await?;
        }
        assert!(
            has_begun.try_recv().is_err(),
            "values are dropped one at a time"
        );
        drop(release);
        // Its own connection continues as well.
        exchange(slow, slow_peer).await?;
        for _ in 0..2 {
            while has_begun.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Ok(())
    });
}
