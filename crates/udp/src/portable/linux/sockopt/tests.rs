use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::*;

const REUSE: SocketOption = (libc::SOL_SOCKET, libc::SO_REUSEADDR);

#[test]
fn options_are_read_back() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(get(socket.as_fd(), REUSE).unwrap(), 0);
    set(socket.as_fd(), REUSE, 1).unwrap();
    assert_eq!(get(socket.as_fd(), REUSE).unwrap(), 1);
}

#[test]
fn unknown_option_is_an_error() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let unknown = (libc::SOL_UDP, 9_999);
    let error = set(socket.as_fd(), unknown, 1).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
    assert!(get(socket.as_fd(), unknown).is_err());
}

#[test]
fn fresh_socket_has_dropped_nothing() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(dropped(socket.as_fd()).unwrap(), 0);
}

#[test]
fn filter_needs_a_group() {
    let accept = libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let alone = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(attach_reuseport_filter(alone.as_fd(), &[accept]).is_err());
    assert!(attach_reuseport_filter(alone.as_fd(), &[]).is_err());
}
