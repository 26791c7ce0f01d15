//! The admin endpoints of a running server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use courser::server::ServerHandle;
use courser_services::Metrics;
use courser_services::admin::{self, Admin, Observer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::plan::AdminPlan;
use crate::error::{Failure, cannot_listen};

/// The admin endpoints.
pub(crate) struct OpenAdmin {
    pub(crate) address: SocketAddr,
    /// Another descriptor of their socket.
    pub(crate) socket: std::net::TcpListener,
    pub(crate) task: JoinHandle<()>,
}

/// Starts to serve the admin endpoints, at a socket that was inherited if there is one.
pub(crate) fn open_admin(
    plan: AdminPlan,
    inherited: Option<std::net::TcpListener>,
    handle: &ServerHandle,
    metrics: Arc<Metrics>,
    what: String,
    observer: Observer,
) -> Result<OpenAdmin, Failure> {
    let AdminPlan { address, guard } = plan;
    let socket = match inherited {
        Some(socket) => Ok(socket),
        None => std::net::TcpListener::bind(address),
    };
    let socket = socket.map_err(|error| cannot_listen("--admin", address, &error))?;
    socket.set_nonblocking(true)?;
    let bound = socket.local_addr()?;
    let listener = TcpListener::from_std(socket.try_clone()?)?;
    let admin = Arc::new(Admin {
        handle: handle.clone(),
        metrics,
        what,
        began: Instant::now(),
        guard,
        observer,
    });
    let mut first = Some(listener);
    let task = handle.keep_running(format!("the admin endpoints at {bound}"), move || {
        let (first, admin) = (first.take(), admin.clone());
        async move {
            let listener = match first {
                Some(listener) => listener,
                None => TcpListener::bind(bound).await?,
            };
            Err(admin::serve(listener, admin).await.into())
        }
    });
    Ok(OpenAdmin {
        address: bound,
        socket,
        task,
    })
}
