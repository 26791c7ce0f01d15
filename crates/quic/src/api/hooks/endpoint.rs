//! Operations on endpoints.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use courser_transport::ConnectionError;

use crate::api::builder::EndpointBuilder;
use crate::api::endpoint::Endpoint;
use crate::error::BindError;
use crate::runtime;
use crate::shard::lock::Shard;
use crate::shard::sockets;

/// Operations on an [`Endpoint`].
#[doc(hidden)]
pub trait EndpointHooks {
    /// Counts `bytes`, which the application holds for its clients, towards the memory budget.
    fn share_memory(&self, bytes: Arc<AtomicU64>);

    /// Returns the number of shards that have stopped because of their sockets, and the reason of the first.
    fn stopped_shards(&self) -> (usize, Option<ConnectionError>);

    /// Refuses new clients like [`Endpoint::set_busy`], with this reason in the CONNECTION_CLOSE, or admits them.
    fn set_refusal(&self, reason: Option<&'static str>);

    /// Opens a socket for each peer of a connection, so that its datagrams arrive here although another
    /// process receives at the address.
    ///
    /// # Errors
    /// Returns the error of the system, and `Unsupported` on systems other than Linux and for sockets that were
    /// given.
    fn keep_peers(&self) -> io::Result<()>;

    /// Stops receiving at the address, except from the peers of connections, and returns descriptors of the
    /// sockets of all shards. Without them, or if the other process fails, `take_address_back` undoes it.
    ///
    /// # Errors
    /// Like [`keep_peers`](Self::keep_peers). Nothing changes then.
    #[cfg(unix)]
    fn give_address_away(&self) -> io::Result<Vec<std::net::UdpSocket>>;

    /// Receives at the address again.
    fn take_address_back(&self);

    /// Leaves the address for good, so that another process can bind it. The peers of connections are still served.
    ///
    /// # Errors
    /// Like [`keep_peers`](Self::keep_peers), and an error if too many peers have connections. Nothing changes then, nor if
    /// the address was given away.
    fn leave_address(&self) -> io::Result<()>;

    /// Ends the endpoint although handles of it are left: it refuses all clients, and closes its sockets once its
    /// connections are over. The returned future completes when they are closed. Counters can still be read.
    ///
    /// # Cancel safety
    /// Safe. The endpoint ends whether or not the future is polled.
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Opens an endpoint on the sockets that another process has given away.
///
/// # Errors
/// Returns an error if the sockets or the configuration cannot be used.
#[doc(hidden)]
pub fn inherit(
    builder: EndpointBuilder,
    address: SocketAddr,
    sockets: Vec<std::net::UdpSocket>,
) -> Result<Endpoint, BindError> {
    builder.inherit(address, sockets)
}

impl EndpointHooks for Endpoint {
    fn share_memory(&self, bytes: Arc<AtomicU64>) {
        let shards = self.shards();
        shards.each(|locked| locked.endpoint.share_memory(bytes.clone()));
    }

    fn stopped_shards(&self) -> (usize, Option<ConnectionError>) {
        let all = self.shards().all().iter();
        let stopped = all.filter_map(|shard| shard.lock().stopped.clone());
        let mut stopped = stopped.peekable();
        let reason = stopped.peek().cloned();
        (stopped.count(), reason)
    }

    fn set_refusal(&self, reason: Option<&'static str>) {
        self.refuse_new(reason);
    }

    fn keep_peers(&self) -> io::Result<()> {
        self.shards().all().iter().try_for_each(|shard| keep(shard))
    }

    #[cfg(unix)]
    fn give_address_away(&self) -> io::Result<Vec<std::net::UdpSocket>> {
        self.keep_peers()?;
        if gave_address_away(self) {
            return Err(io::Error::other(
                "the address was left to another process before",
            ));
        }
        let shards = self.shards().all().iter();
        let sockets = shards.map(|shard| shard.lock().outbox.sockets.newest().duplicate());
        let sockets = sockets.collect::<io::Result<_>>()?;
        set_given_away(self, true);
        Ok(sockets)
    }

    fn take_address_back(&self) {
        set_given_away(self, false);
    }

    fn leave_address(&self) -> io::Result<()> {
        if gave_address_away(self) {
            return Ok(());
        }
        let shards = self.shards().all();
        let are_kept = |shard: &Arc<Shard>| {
            let locked = shard.lock();
            locked
                .outbox
                .sockets
                .have_own(sockets::paths(&locked.endpoint))
        };
        if !shards.iter().all(are_kept) {
            return Err(io::Error::other(format!(
                "more than {} clients of a shard have connections",
                sockets::MAX_KEPT
            )));
        }
        self.shards().each(|locked| {
            locked.outbox.sockets.set_left();
            locked.driver.call();
        });
        shards.iter().try_for_each(|shard| {
            let newest = shard.lock().outbox.sockets.newest().clone();
            newest.leave_address()
        })
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let shards = self.shards().all().iter();
        let sockets: Vec<_> = shards.map(|it| Arc::downgrade(&it.socket())).collect();
        self.end_shards();
        Box::pin(async move {
            // The task of each shard holds its socket until it ends.
            while sockets.iter().any(|it| it.strong_count() > 0) {
                runtime::sleep(CHECK_INTERVAL).await;
            }
        })
    }
}

/// Interval between checks whether the sockets are closed.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Opens sockets for the peers of the connections of a shard, without its lock.
fn keep(shard: &Shard) -> io::Result<()> {
    let locked = shard.lock();
    let paths = sockets::paths(&locked.endpoint);
    let paths = locked.outbox.sockets.without_own(paths);
    let newest = locked.outbox.sockets.newest().clone();
    drop(locked);
    for path in paths {
        let socket = newest.open_for_path(path)?;
        shard.lock().outbox.sockets.keep(path, socket);
    }
    shard.lock().driver.call();
    Ok(())
}

fn gave_address_away(endpoint: &Endpoint) -> bool {
    let mut shards = endpoint.shards().all().iter();
    shards.any(|shard| shard.lock().outbox.sockets.is_given_away())
}

fn set_given_away(endpoint: &Endpoint, is_given_away: bool) {
    endpoint.shards().each(|locked| {
        locked.outbox.sockets.set_given_away(is_given_away);
        locked.driver.call();
    });
}
