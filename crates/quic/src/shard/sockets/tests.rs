use std::net::{Ipv4Addr, SocketAddr};

use super::*;
use crate::runtime::Current;

#[tokio::test]
async fn peers_beyond_the_limit_have_no_socket() {
    let runtime = Current::require().expect("tokio is running");
    let bind = || {
        runtime
            .bind((Ipv4Addr::LOCALHOST, 0).into())
            .expect("a port")
    };
    let mut sockets = Sockets::new(Arc::new(bind()));
    let peer = |port| FourTuple::to(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let peers = || (1..).map(peer);
    // A peer with two connections has one socket.
    let twice = peers().take(2).chain(peers().take(2));
    let first = sockets.without_own(twice);
    assert_eq!(first.len(), 2);
    for peer in first {
        let socket = sockets.newest().open_for_path(peer).expect("Linux");
        sockets.keep(peer, socket);
    }
    assert_eq!(sockets.without_own(peers().take(3)).len(), 1);
    let most = sockets.without_own(peers().take(MAX_KEPT + 10));
    assert_eq!(most.len(), MAX_KEPT - 2);
    let mut generation = 0;
    let changed = sockets.changed_since(&mut generation).expect("changed");
    assert_eq!(changed.len(), 3, "the socket in use is the last one");
    assert!(Arc::ptr_eq(&changed[2].1, sockets.newest()));
    assert_eq!(sockets.close().len(), 3);
}
