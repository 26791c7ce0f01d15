//! Admission of clients: the address filter and the busy switch.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use courser_quic::AddressFilter;
use tokio::sync::watch;

use super::refusals::Refusal;

/// The admission state of a server, shared by its listeners. It can be changed at any time.
#[derive(Debug)]
pub(crate) struct Gate {
    filter: watch::Sender<Arc<AddressFilter>>,
    is_busy: AtomicBool,
}

impl Gate {
    pub(crate) fn new(filter: Arc<AddressFilter>) -> Arc<Self> {
        Arc::new(Self {
            filter: watch::Sender::new(filter),
            is_busy: AtomicBool::new(false),
        })
    }

    /// Admits or refuses a new connection from this address.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<(), Refusal> {
        if self.filter.borrow().is_blocked(address) {
            return Err(Refusal::Blocked);
        }
        match self.is_busy() {
            true => Err(Refusal::Busy),
            false => Ok(()),
        }
    }

    pub(crate) fn set_filter(&self, filter: Arc<AddressFilter>) {
        self.filter.send_replace(filter);
    }

    pub(crate) fn filter(&self) -> Arc<AddressFilter> {
        self.filter.borrow().clone()
    }

    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy.load(Relaxed)
    }

    /// Waits until the address becomes blocked.
    pub(crate) fn blocks(&self, address: IpAddr) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut filter = self.filter.subscribe();
        Box::pin(async move {
            let is_blocked = |filter: &Arc<AddressFilter>| filter.is_blocked(address);
            let is_gone = filter.wait_for(is_blocked).await.is_err();
            if is_gone {
                // The server is gone and no longer blocks addresses.
                std::future::pending::<()>().await;
            }
        })
    }
}
