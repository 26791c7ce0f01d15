//! Background tasks that end while the server runs.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use courser::server::{Event, Protocol, ServerHandle};
use http::header::ALT_SVC;

use super::client::Client;
use super::{start_with, within};
use crate::common::until;

fn app() -> Router {
    Router::new().route("/", get(|| async { "served" }))
}

/// The events of a server that concern its tasks.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let events = self.clone();
        move |event| {
            if let Event::TaskEnded { .. } | Event::TaskResumed { .. } = event {
                events.0.lock().expect("no panic").push(event.to_string());
            }
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

async fn alt_svc(client: &mut Client) -> String {
    let response = within(client.get("/")).await.expect("an answer");
    let value = response.headers().get(ALT_SVC).expect("a field");
    value.to_str().expect("text").to_owned()
}

fn is_whole(handle: &ServerHandle) -> bool {
    handle.is_ready() && handle.stats().ready && handle.stats().stopped_tasks.is_empty()
}

/// Fault F80: a server went on announcing HTTP/3 after its socket had failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_endpoint_is_reported_and_reopened() {
    let events = Events::default();
    let running = start_with(app(), |server| server.on_event(events.listener()));
    let (handle, address) = (running.handle.clone(), running.handle.local_addr());
    let connect = |protocol| Client::connect(protocol, address, &running.identity);
    let mut tcp = within(connect(Protocol::Http2)).await.expect("a server");
    let mut quic = within(connect(Protocol::Http3)).await.expect("a server");
    assert_eq!(within(quic.text("/")).await, "served");
    let announced = alt_svc(&mut tcp).await;
    assert_eq!(announced, "h3=\":443\"; ma=86400");
    assert!(is_whole(&handle));

    for endpoint in handle.endpoints() {
        endpoint.close(7u32.into(), b"it has failed");
    }
    until(|| !events.all().is_empty()).await;
    let name = format!("QUIC at {address}");
    let ended = format!("{name} has stopped: its endpoint was closed; it is restarted in 1 s");
    assert_eq!(events.all()[0], ended);
    // The clock does not reach the second in which it begins again, or has just passed it.
    if events.all().len() == 1 && !handle.is_ready() {
        assert_eq!(handle.stats().stopped_tasks, [name.as_str()]);
        assert!(handle.stats().task_ends >= 1);
        let withdrawn = alt_svc(&mut tcp).await;
        assert!(withdrawn == "clear" || is_whole(&handle), "{withdrawn}");
    }
    let resumed = format!("{name} runs again");
    until(|| events.all().last() == Some(&resumed)).await;
    assert!(is_whole(&handle));
    assert_eq!(alt_svc(&mut tcp).await, announced);
    let mut quic = within(connect(Protocol::Http3))
        .await
        .expect("the same port");
    assert_eq!(within(quic.text("/")).await, "served");
    assert_eq!(handle.endpoints().len(), 1);
    let drained = running.drained().await;
    assert_eq!(drained.cut, 0);
    assert!(
        events.all().iter().all(|text| text.starts_with(&name)),
        "{:?}",
        events.all()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn application_tasks_are_restarted_and_reported() {
    let events = Events::default();
    let running = start_with(app(), |server| server.on_event(events.listener()));
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    let mut first = Some(ends);
    let task = running.handle.keep_running("the sweeper", move || {
        let first = first.take();
        async move {
            match first {
                Some(ends) => Err(ends.await.map_or("gone", |()| "asked to").into()),
                None => std::future::pending().await,
            }
        }
    });
    assert!(is_whole(&running.handle));
    end.send(()).expect("it runs");
    until(|| events.all().len() == 2).await;
    let expected = [
        "the sweeper has stopped: asked to; it is restarted in 1 s",
        "the sweeper runs again",
    ];
    assert_eq!(events.all(), expected);
    assert!(is_whole(&running.handle));
    assert_eq!(running.handle.stats().task_ends, 1);
    task.abort();
    running.drained().await;
    assert_eq!(events.all(), expected);
}
