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

/// Limit K161. Sockets for further paths are beside the one in use, and do not take the places of earlier ones.
#[tokio::test]
async fn sockets_for_further_paths_are_apart_and_limited() {
    let runtime = Current::require().expect("tokio is running");
    let bind = || {
        let bound = runtime.bind((Ipv4Addr::LOCALHOST, 0).into());
        Arc::new(bound.expect("a port"))
    };
    let mut sockets = Sockets::new(bind());
    let in_use = sockets.newest_id();
    let via = |number: usize| Via::Interface(format!("wwan{number}"));
    let added: Vec<_> = (0..MAX_BESIDE)
        .map(|number| sockets.add_beside(via(number), bind()).expect("room"))
        .collect();
    assert_eq!(sockets.add_beside(via(MAX_BESIDE), bind()), None);
    assert_eq!(sockets.newest_id(), in_use);
    assert_eq!(sockets.beside(&via(3), true), Some(added[3]));
    assert_eq!(
        sockets.beside(&via(3), false),
        None,
        "it sends to IPv4 only"
    );
    for _ in 0..MAX_SOCKETS {
        let id = sockets.add(bind(), |_| true);
        assert!(!added.contains(&id) && sockets.newest_id() == id);
    }
    assert!(sockets.get(in_use).is_none(), "it was the oldest");
    assert!(added.iter().all(|id| sockets.get(*id).is_some()));
    sockets.give_up(added[3]);
    assert_eq!(sockets.beside(&via(3), true), None);
    let again = sockets.add_beside(via(3), bind()).expect("room");
    assert!(!added.contains(&again), "an ID is used once");
}
