//! Hooks that are called under the lock. They may drop handles there. A call of the endpoint panics instead of
//! waiting for its own lock, which ends the connection of the hook.

use std::sync::{Mutex, PoisonError};

use courser::telemetry::{Record, Sink};
use courser::{ConnectionError, TokenStore};
use courser_base::Time;

use super::{
    Arc, Bytes, Connection, Endpoint, Identity, Result, Scene, ServerConfig, call_everything,
    client_config, watched,
};

/// Returns the message of the panic that has ended a connection.
fn fault(error: &ConnectionError) -> String {
    match error {
        ConnectionError::TransportError(error) => error.to_string(),
        other => format!("{other:?}"),
    }
}

const MESSAGE: &str = "has used the endpoint that called it";

#[test]
fn sink_that_calls_its_connection_ends_it() {
    watched(|| async {
        let scene = Scene::new().await?;
        let (connection, endpoint) = (scene.client.clone(), scene.endpoint.clone());
        scene.client.set_sink(Some(Box::new(move |_, _: &Record| {
            call_everything(&connection, &endpoint);
        })));
        let _ = scene.client.ping().await;
        let error = fault(&scene.client.closed().await);
        assert!(error.contains(MESSAGE), "{error}");
        Ok(())
    });
}

/// Drops a handle in its first call, and another one when it is dropped.
struct Drops {
    in_call: Mutex<Option<Box<dyn std::any::Any + Send>>>,
    connection: Connection,
    endpoint: Endpoint,
}

impl Sink for Drops {
    fn record(&mut self, _: Time, _: &Record) {
        drop(self.in_call.lock().expect("no thread has panicked").take());
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        call_everything(&self.connection, &self.endpoint);
    }
}

#[test]
fn sink_may_drop_handles_and_calls_everything_when_it_is_dropped() {
    watched(|| async {
        for replaced in [true, false] {
            let scene = Scene::new().await?;
            let (send, receive) = scene.client.open_bi().await?;
            let (other, _kept) = scene.client.open_bi().await?;
            let stopped = other.stopped();
            let handles = Box::new((send, receive, stopped, scene.client.clone()));
            scene.client.set_sink(Some(Box::new(Drops {
                in_call: Mutex::new(Some(handles)),
                connection: scene.client.clone(),
                endpoint: scene.endpoint.clone(),
            })));
            scene.client.ping().await?;
            match replaced {
                true => scene.client.set_sink(None),
                false => scene.client.close(0u32.into(), b""),
            }
            assert_eq!(replaced, scene.client.ping().await.is_ok());
            scene.client.close(0u32.into(), b"");
        }
        Ok(())
    });
}

#[test]
fn last_handles_may_be_dropped_in_a_sink() {
    watched(|| async {
        let scene = Scene::new().await?;
        let (client, server, endpoint) = (scene.client, scene.server, scene.endpoint);
        drop((scene.server_endpoint, scene.sender, scene.ended));
        let handles = Arc::new(Mutex::new(None::<(Connection, Endpoint)>));
        let in_sink = handles.clone();
        client.set_sink(Some(Box::new(move |_, _: &Record| {
            drop(in_sink.lock().expect("no thread has panicked").take());
        })));
        *handles.lock().expect("no thread has panicked") = Some((client, endpoint));
        // The next record drops the last handles, which closes the connection.
        server.ping().await.ok();
        let _ = server.closed().await;
        Ok(())
    });
}

/// Uses a connection whenever a token is stored.
#[derive(Default)]
struct Store {
    used: Mutex<Option<(Connection, Endpoint)>>,
}

impl TokenStore for Store {
    fn put(&self, _: &str, _: Bytes) {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((connection, endpoint)) = &*used {
            call_everything(connection, endpoint);
        }
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        None
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A panic in `put` poisons the lock.
        let used = self.used.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((connection, endpoint)) = used.take() {
            call_everything(&connection, &endpoint);
        }
    }
}

#[test]
fn token_store_that_calls_the_endpoint_ends_its_own_connection() {
    watched(|| async {
        let identity = Identity::dev()?;
        let config = ServerConfig::with_identity(&identity)?.alpn(["example"]);
        let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
        let client = Endpoint::client("127.0.0.1:0".parse()?)?;
        let accept = tokio::spawn({
            let server = server.clone();
            async move {
                let mut all = Vec::new();
                while let Some(incoming) = server.accept().await {
                    all.extend(incoming.await);
                }
            }
        });
        let connect = |store: Option<Arc<dyn TokenStore>>| -> Result<_> {
            let config = client_config(&identity)?.token_store(store);
            Ok(client.connect_with(config, server.local_addr()?, "localhost")?)
        };
        let first = connect(None)?.await?;
        let store = Store {
            used: Mutex::new(Some((first.clone(), client.clone()))),
        };
        let faulty = connect(Some(Arc::new(store)))?.await?;
        let error = fault(&faulty.closed().await);
        assert!(error.contains(MESSAGE), "{error}");
        first.ping().await?;
        accept.abort();
        Ok(())
    });
}
