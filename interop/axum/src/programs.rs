//! Programs as services often are: a store of keys and values, a list of tasks, a counter for each session, and an echo
//! over WebSocket.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Multipart, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{any, get, post};
use serde::{Deserialize, Serialize};
use tower_sessions::{MemoryStore, Session, SessionManagerLayer};

/// Returns the routes of all programs.
pub fn routes() -> Router {
    let keys = Router::new()
        .route("/keys", get(keys))
        .route(
            "/keys/{key}",
            get(value).put(set_value).delete(remove_value),
        )
        .with_state(Store::default());
    let tasks = Router::new()
        .route("/tasks", get(tasks).post(add_task))
        .route(
            "/tasks/{id}",
            get(task).patch(change_task).delete(remove_task),
        )
        .with_state(Tasks::default());
    let visits = Router::new()
        .route("/visits", get(visits))
        .layer(SessionManagerLayer::new(MemoryStore::default()));
    Router::new()
        .merge(visits)
        .route("/echo-socket", any(echo_socket))
        .route("/form", post(form))
        .merge(keys)
        .merge(tasks)
}

type Store = Arc<Mutex<BTreeMap<String, Bytes>>>;

async fn keys(State(store): State<Store>) -> Json<Vec<String>> {
    let store = store.lock().unwrap_or_else(PoisonError::into_inner);
    Json(store.keys().cloned().collect())
}

async fn value(Path(key): Path<String>, State(store): State<Store>) -> Response {
    let store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let found = store.get(&key).cloned();
    found.map_or(StatusCode::NOT_FOUND.into_response(), Bytes::into_response)
}

async fn set_value(
    Path(key): Path<String>,
    State(store): State<Store>,
    value: Bytes,
) -> StatusCode {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    match store.insert(key, value) {
        None => StatusCode::CREATED,
        Some(_) => StatusCode::NO_CONTENT,
    }
}

async fn remove_value(Path(key): Path<String>, State(store): State<Store>) -> StatusCode {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    match store.remove(&key) {
        None => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::NO_CONTENT,
    }
}

#[derive(Clone, Serialize)]
struct Task {
    id: usize,
    text: String,
    is_done: bool,
}

#[derive(Deserialize)]
struct NewTask {
    text: String,
}

#[derive(Deserialize)]
struct TaskChange {
    text: Option<String>,
    is_done: Option<bool>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    skip: usize,
    take: Option<usize>,
}

type Tasks = Arc<Mutex<BTreeMap<usize, Task>>>;

async fn tasks(Query(page): Query<Page>, State(tasks): State<Tasks>) -> Json<Vec<Task>> {
    let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = tasks.values().skip(page.skip);
    Json(
        rest.take(page.take.unwrap_or(usize::MAX))
            .cloned()
            .collect(),
    )
}

async fn task(Path(id): Path<usize>, State(tasks): State<Tasks>) -> Result<Json<Task>, StatusCode> {
    let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    tasks
        .get(&id)
        .cloned()
        .map(Json)
        .ok_or(StatusCode::NOT_FOUND)
}

async fn add_task(
    State(tasks): State<Tasks>,
    Json(new): Json<NewTask>,
) -> (StatusCode, Json<Task>) {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let id = tasks.last_key_value().map_or(1, |(id, _)| id + 1);
    let task = Task {
        id,
        text: new.text,
        is_done: false,
    };
    tasks.insert(id, task.clone());
    (StatusCode::CREATED, Json(task))
}

async fn change_task(
    Path(id): Path<usize>,
    State(tasks): State<Tasks>,
    Json(change): Json<TaskChange>,
) -> Result<Json<Task>, StatusCode> {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    let task = tasks.get_mut(&id).ok_or(StatusCode::NOT_FOUND)?;
    if let Some(text) = change.text {
        task.text = text;
    }
    task.is_done = change.is_done.unwrap_or(task.is_done);
    Ok(Json(task.clone()))
}

async fn remove_task(Path(id): Path<usize>, State(tasks): State<Tasks>) -> StatusCode {
    let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
    match tasks.remove(&id) {
        None => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::NO_CONTENT,
    }
}

/// Returns the length of each part of a form.
async fn form(mut parts: Multipart) -> Result<Json<HashMap<String, usize>>, Response> {
    let mut lengths = HashMap::new();
    while let Some(part) = parts
        .next_field()
        .await
        .map_err(IntoResponse::into_response)?
    {
        let name = part.name().unwrap_or_default().to_owned();
        let content = part.bytes().await.map_err(IntoResponse::into_response)?;
        lengths.insert(name, content.len());
    }
    Ok(Json(lengths))
}

/// Returns how often the session was here before, and counts.
async fn visits(session: Session) -> Result<String, StatusCode> {
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let before: usize = session.get("visits").await.map_err(failed)?.unwrap_or(0);
    session.insert("visits", before + 1).await.map_err(failed)?;
    Ok(before.to_string())
}

async fn echo_socket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(echo)
}

/// Returns each message, until the client closes.
async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if matches!(message, Message::Text(_) | Message::Binary(_))
            && socket.send(message).await.is_err()
        {
            return;
        }
    }
}
