//! The origin server behind `courser serve --proxy`, in a separate process: `courser-robustness
//! origin`.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::net::TcpListener;

use super::objects::{self, Object};
use super::process::loopback;

/// Prints its address and serves until its standard input ends.
///
/// `GET /obj/N` returns an object. `POST /hash` returns the length and the SHA-256 hash of the
/// content received.
pub(super) fn main() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(serve()).map_err(|error| error.to_string())
}

async fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind(loopback()).await?;
    println!("{}", json!({ "address": listener.local_addr()? }));
    let router = Router::new()
        .route("/obj/{number}", get(object))
        .route("/hash", post(hash))
        .with_state(objects::all());
    let serving = axum::serve(listener, router);
    let end =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::select! {
        result = async { serving.await } => result,
        _ = end => Ok(()),
    }
}

async fn object(
    State(objects): State<Arc<[Object]>>,
    Path(number): Path<usize>,
) -> Result<Body, StatusCode> {
    let object = objects.get(number).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Body::from(object.bytes.clone()))
}

async fn hash(mut body: Body) -> Result<String, StatusCode> {
    let (mut length, mut hash) = (0, Context::new(&SHA256));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        if let Ok(data) = frame.into_data() {
            length += data.len();
            hash.update(&data);
        }
    }
    Ok(format!("{length} {}", objects::hex(hash.finish().as_ref())))
}
