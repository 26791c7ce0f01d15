//! Wakers of executors that use the connection when they wake or are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};

use super::{Connection, Duration, Endpoint, Result, Scene, call_everything, watched};

struct Calls {
    connection: Connection,
    endpoint: Endpoint,
    woken: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        call_everything(&self.connection, &self.endpoint);
        self.woken.fetch_add(1, SeqCst);
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        call_everything(&self.connection, &self.endpoint);
        self.dropped.fetch_add(1, SeqCst);
    }
}

/// Polls a future with a waker of its own, forgets the waker, and drops the future if `is_given_up`.
async fn wait<F: Future>(scene: &Scene, future: F, is_given_up: bool) -> Result {
    let (woken, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let waker = Waker::from(Arc::new(Calls {
        connection: scene.client.clone(),
        endpoint: scene.endpoint.clone(),
        woken: woken.clone(),
        dropped: dropped.clone(),
    }));
    let mut future = Box::pin(future);
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    // Replaces the waker, and is replaced itself.
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    if is_given_up {
        drop(future);
    } else {
        scene.server.close(0u32.into(), b"");
    }
    while dropped.load(SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(is_given_up || woken.load(SeqCst) > 0);
    Ok(())
}

#[test]
fn wakers_that_use_the_connection() {
    watched(|| async {
        for is_given_up in [true, false] {
            let scene = Scene::new().await?;
            wait(&scene, scene.client.read_datagram(), is_given_up).await?;
            let scene = Scene::new().await?;
            wait(&scene, scene.client.accept_bi(), is_given_up).await?;
            let scene = Scene::new().await?;
            wait(&scene, scene.client.closed(), is_given_up).await?;
            let scene = Scene::new().await?;
            let (_send, mut receive) = scene.client.open_bi().await?;
            // The waker of a reader stays until its stream is dropped.
            let read = async move { receive.read_chunk(1).await };
            wait(&scene, read, is_given_up).await?;
            let scene = Scene::new().await?;
            let (send, _receive) = scene.client.open_bi().await?;
            wait(&scene, send.stopped(), is_given_up).await?;
            wait_to_write(is_given_up).await?;
        }
        Ok(())
    });
}

async fn wait_to_write(is_given_up: bool) -> Result {
    let scene = Scene::new().await?;
    let (mut send, _receive) = scene.client.open_bi().await?;
    // The peer reads nothing.
    let content = vec![1; 16 << 20];
    let write = async move { send.write_all(&content).await };
    wait(&scene, write, is_given_up).await
}
