//! Code of users runs where no lock is held (docs/design/0044): owners of buffers, wakers and hooks may use
//! the endpoint when they are dropped, and may take long.
//!
//! A test that would deadlock fails after a minute, because its runtime has a thread of its own.

include!("../../doc/pair.rs");

mod calls;
mod hooks;
mod slow;
mod wakers;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use courser::{DatagramOptions, TransportConfig};

use self::calls::call_everything;

/// Runs a test on a thread of its own, with one thread and with several.
fn watched<F: Future<Output = Result>>(test: impl Fn() -> F + Send + Clone + 'static) {
    for threads in [1, 3] {
        let test = test.clone();
        let (sender, ended) = channel();
        std::thread::spawn(move || {
            let mut runtime = match threads {
                1 => tokio::runtime::Builder::new_current_thread(),
                _ => tokio::runtime::Builder::new_multi_thread(),
            };
            let runtime = runtime.worker_threads(threads).enable_all().build();
            let result = runtime.expect("the runtime is built").block_on(test());
            sender.send(result.map_err(|error| error.to_string()))
        });
        let result = ended.recv_timeout(Duration::from_secs(60));
        let result =
            result.expect("a deadlock: code of a user has waited for a lock of the library");
        result.unwrap_or_else(|error| panic!("with {threads} threads: {error}"));
    }
}

/// A buffer whose owner calls everything when it is dropped, and then reports it.
struct Owner {
    content: Vec<u8>,
    connection: Connection,
    endpoint: Endpoint,
    calls: fn(&Connection, &Endpoint),
    ended: Sender<()>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        (self.calls)(&self.connection, &self.endpoint);
        let _ = self.ended.send(());
    }
}

/// Both ends of a connection, and a channel on which owners of buffers report their end.
struct Scene {
    client: Connection,
    server: Connection,
    endpoint: Endpoint,
    server_endpoint: Endpoint,
    sender: Sender<()>,
    ended: Receiver<()>,
}

impl Scene {
    async fn new() -> Result<Self> {
        Self::with(TransportConfig::default()).await
    }

    async fn with(transport: TransportConfig) -> Result<Self> {
        let identity = Identity::dev()?;
        let config = ServerConfig::with_identity(&identity)?.alpn(["example"]);
        let server_endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
        let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
        let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["example"]);
        endpoint.set_default_client_config(config.transport_config(transport));
        let connecting = endpoint.connect(server_endpoint.local_addr()?, "localhost")?;
        let incoming = server_endpoint.accept().await.ok_or("closed")?;
        let (client, server) = tokio::join!(connecting, incoming.into_future());
        let (sender, ended) = channel();
        Ok(Self {
            client: client?,
            server: server?,
            endpoint,
            server_endpoint,
            sender,
            ended,
        })
    }

    fn bytes(&self, len: usize) -> Bytes {
        self.bytes_that(len, call_everything)
    }

    fn bytes_that(&self, len: usize, calls: fn(&Connection, &Endpoint)) -> Bytes {
        Bytes::from_owner(Owner {
            content: vec![7; len],
            calls,
            connection: self.client.clone(),
            endpoint: self.endpoint.clone(),
            ended: self.sender.clone(),
        })
    }

    /// Waits until so many owners were dropped.
    async fn ended(&self, count: usize) -> Result {
        for _ in 0..count {
            while self.ended.try_recv().is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Ok(())
    }
}

#[test]
fn acknowledged_stream_data() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut stream = scene.client.open_uni().await?;
        for len in [1, 1000, 20_000, 100_000] {
            stream.write_chunk(scene.bytes(len)).await?;
        }
        stream.finish()?;
        let mut received = scene.server.accept_uni().await?;
        assert_eq!(received.read_to_end(1 << 20).await?.len(), 121_001);
        scene.ended(4).await
    });
}

#[test]
fn buffers_that_are_shared_with_the_application_until_the_end() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut stream = scene.client.open_uni().await?;
        let whole = scene.bytes(50_000);
        stream.write_chunk(whole.slice(..20_000)).await?;
        stream.write_chunk(whole.slice(20_000..)).await?;
        drop(whole);
        stream.finish()?;
        scene
            .server
            .accept_uni()
            .await?
            .read_to_end(1 << 20)
            .await?;
        scene.ended(1).await
    });
}

#[test]
fn reset_stopped_and_truncated_streams() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut reset = scene.client.open_uni().await?;
        reset.write_chunk(scene.bytes(20_000)).await?;
        reset.reset(1u32.into())?;
        let mut stopped = scene.client.open_uni().await?;
        stopped.write_chunk(scene.bytes(20_000)).await?;
        let stop = async {
            let mut received = scene.server.accept_uni().await?;
            while received.id() != stopped.id() {
                received = scene.server.accept_uni().await?;
            }
            received.stop(2u32.into())?;
            Result::Ok(())
        };
        stop.await?;
        scene.ended(2).await?;
        // Its bytes may have been acknowledged before it was stopped.
        assert_eq!(stopped.stopped().await?, Some(2u32.into()));
        // Refused: the stream was stopped.
        let mut refused = [scene.bytes(2_000)];
        assert!(stopped.write_chunks(&mut refused).await.is_err());
        drop(refused);
        scene.ended(1).await
    });
}

#[test]
fn datagrams_that_are_sent_expired_replaced_or_refused() {
    watched(|| async {
        let transport = TransportConfig {
            datagram_send_queue: 2,
            ..TransportConfig::default()
        };
        let scene = Scene::with(transport).await?;
        for _ in 0..10 {
            scene.client.send_datagram(scene.bytes(1000))?;
        }
        let at_once = DatagramOptions::new().max_age(Duration::ZERO);
        scene
            .client
            .send_datagram_with(scene.bytes(1000), at_once)?;
        let tracked = scene
            .client
            .send_datagram_tracked(scene.bytes(1000), DatagramOptions::new())?;
        scene.client.send_datagram_wait(scene.bytes(1000)).await?;
        assert!(scene.client.send_datagram(scene.bytes(70_000)).is_err());
        let _ = tracked.await;
        scene.ended(14).await
    });
}

#[test]
fn buffers_of_a_connection_that_ends() {
    watched(|| async {
        for end in 0..5 {
            let scene = Scene::new().await?;
            let mut stream = scene.client.open_uni().await?;
            // The peer does not read, so that some of it is never sent.
            for _ in 0..4 {
                let chunk = scene.bytes(500_000);
                let write = stream.write_chunk(chunk);
                let _ = tokio::time::timeout(Duration::from_millis(5), write).await;
            }
            match end {
                0 => scene.client.close(0u32.into(), b""),
                1 => scene.server.close(0u32.into(), b""),
                2 => scene.endpoint.close(0u32.into(), b""),
                3 => scene.server_endpoint.close(0u32.into(), b""),
                _ => scene.server.close(9u32.into(), b"with unread data"),
            }
            scene.client.closed().await;
            drop(stream);
            scene.ended(4).await?;
        }
        Ok(())
    });
}

#[test]
fn refused_datagrams_and_writes_of_a_closed_connection() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut stream = scene.client.open_uni().await?;
        scene.client.close(0u32.into(), b"");
        assert!(scene.client.send_datagram(scene.bytes(100)).is_err());
        assert!(
            scene
                .client
                .send_datagram_wait(scene.bytes(100))
                .await
                .is_err()
        );
        assert!(stream.write_chunk(scene.bytes(20_000)).await.is_err());
        scene.ended(3).await
    });
}

#[test]
fn chunks_that_a_read_replaces() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut stream = scene.server.open_uni().await?;
        stream.write_all(&[1; 100_000]).await?;
        stream.finish()?;
        let mut received = scene.client.accept_uni().await?;
        let mut chunks = [scene.bytes(10), scene.bytes(10)];
        let mut replaced = 0;
        while let Some(count) = received.read_chunks(&mut chunks).await? {
            replaced = count.max(replaced);
        }
        assert!(replaced > 0);
        scene.ended(replaced).await
    });
}

#[test]
fn many_buffers_that_call_at_once_do_not_exhaust_the_stack() {
    watched(|| async {
        let scene = Scene::new().await?;
        let mut stream = scene.client.open_uni().await?;
        let receive = async {
            let mut received = scene.server.accept_uni().await?;
            received.read_to_end(1 << 30).await?;
            Result::Ok(())
        };
        let send = async {
            for _ in 0..2_000 {
                let chunk = scene.bytes_that(1_500, |connection, _| {
                    connection.stats();
                });
                stream.write_chunk(chunk).await?;
            }
            stream.finish()?;
            Result::Ok(())
        };
        tokio::try_join!(receive, send)?;
        scene.ended(2_000).await
    });
}

#[test]
fn stopped_runtime_drops_buffers() {
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("the runtime is built");
        let result = runtime.block_on(async {
            let scene = Scene::new().await?;
            let mut stream = scene.client.open_uni().await?;
            stream.write_chunk(scene.bytes(20_000)).await?;
            stream.reset(0u32.into())?;
            scene.ended(1).await?;
            Result::Ok((scene, stream))
        });
        let (scene, mut stream) = result.expect("the ends are connected");
        drop(runtime);
        // No driver is left to drop it.
        let chunk = scene.bytes(20_000);
        drop(scene.client.send_datagram(scene.bytes(100)));
        let _ = stream.reset(1u32.into());
        drop((chunk, stream, scene));
        sender.send(())
    });
    ended
        .recv_timeout(Duration::from_secs(60))
        .expect("a deadlock: the runtime was not dropped");
}

/// Returns a client configuration that trusts `identity`.
fn client_config(identity: &Identity) -> Result<ClientConfig> {
    Ok(ClientConfig::with_roots([identity.certificate()])?.alpn(["example"]))
}

/// A handle that several values share.
type Shared<T> = Arc<std::sync::Mutex<T>>;
