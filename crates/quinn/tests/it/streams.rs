//! Streams, early data and datagrams.

use quinn::{
    ConnectionError, Dir, Endpoint, ReadError, ReadExactError, ReadToEndError, Side, StreamId,
    VarInt, WriteError,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{LOOPBACK, Pair, configs};

#[tokio::test]
async fn echo_returns_what_was_sent_with_offsets() {
    let pair = Pair::new().await;
    let sent: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
    let echo = async {
        let (mut send, mut receive) = pair.server.accept_bi().await.unwrap();
        assert_eq!(receive.id(), StreamId::new(Side::Client, Dir::Bi, 0));
        let mut expected = 0;
        while let Some(chunk) = receive.read_chunk(10_000, true).await.unwrap() {
            assert_eq!(chunk.offset, expected);
            expected += chunk.bytes.len() as u64;
            send.write_chunk(chunk.bytes).await.unwrap();
        }
        send.finish().unwrap();
        assert!(send.finish().is_err(), "a second time");
        assert_eq!(send.stopped().await, Ok(None));
    };
    let ask = async {
        let (mut send, mut receive) = pair.client.open_bi().await.unwrap();
        let write = async {
            send.write_all(&sent).await.unwrap();
            send.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let ((), read) = tokio::join!(
            write,
            AsyncReadExt::read_to_end(&mut receive, &mut received)
        );
        assert_eq!(read.unwrap(), sent.len());
        assert!(received == sent);
    };
    tokio::join!(echo, ask);
}

#[tokio::test]
async fn early_data_arrives_after_the_first_connection() {
    let (server, client) = configs();
    let server = Endpoint::server(server, LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let mut endpoint = Endpoint::client(LOOPBACK).unwrap();
    endpoint.set_default_client_config(client);
    let serve = async {
        for _ in 0..2 {
            let connecting = server.accept().await.unwrap().accept().unwrap();
            let (connection, complete) = connecting.into_0rtt().expect("a server always can");
            let mut receive = connection.accept_uni().await.unwrap();
            let text = receive.read_to_end(10).await.unwrap();
            let mut send = connection.open_uni().await.unwrap();
            send.write_all(&[u8::from(receive.is_0rtt())])
                .await
                .unwrap();
            send.write_all(&text).await.unwrap();
            send.finish().unwrap();
            complete.await;
            connection.closed().await;
        }
    };
    let connect = async {
        for is_resumed in [false, true] {
            let connecting = endpoint.connect(address, "localhost").unwrap();
            let (connection, accepted) = match connecting.into_0rtt() {
                Ok((connection, accepted)) => (connection, Some(accepted)),
                Err(connecting) => (connecting.await.unwrap(), None),
            };
            assert_eq!(accepted.is_some(), is_resumed);
            let mut send = connection.open_uni().await.unwrap();
            send.write_all(b"hello").await.unwrap();
            send.finish().unwrap();
            let mut receive = connection.accept_uni().await.unwrap();
            let answer = receive.read_to_end(10).await.unwrap();
            assert_eq!(answer, [&[u8::from(is_resumed)][..], b"hello"].concat());
            if let Some(accepted) = accepted {
                assert!(accepted.await, "the server accepts early data");
            }
            connection.close(0u32.into(), b"");
        }
    };
    tokio::join!(serve, connect);
}

#[tokio::test]
async fn datagrams_go_both_ways_within_the_limit() {
    let pair = Pair::new().await;
    let most = pair.client.max_datagram_size().unwrap();
    pair.client.send_datagram(vec![7; most].into()).unwrap();
    assert_eq!(pair.server.read_datagram().await.unwrap(), vec![7; most]);
    let waited = pair.server.send_datagram_wait(b"answer"[..].into());
    waited.await.unwrap();
    assert_eq!(pair.client.read_datagram().await.unwrap(), b"answer"[..]);
    let large = pair.client.send_datagram(vec![0; 70_000].into());
    assert_eq!(large, Err(quinn::SendDatagramError::TooLarge));
    assert!(pair.client.datagram_send_buffer_space() > 1 << 19);
}

#[tokio::test]
async fn resets_and_stops_carry_their_codes() {
    let pair = Pair::new().await;
    let (code, other) = (VarInt::from_u32(17), VarInt::from_u32(18));
    let (mut send, mut receive) = pair.client.open_bi().await.unwrap();
    send.write_all(b"begin").await.unwrap();
    let (mut back, mut from) = pair.server.accept_bi().await.unwrap();
    send.reset(code).unwrap();
    assert_eq!(from.received_reset().await, Ok(Some(code)));
    assert_eq!(from.read(&mut [0; 9]).await, Err(ReadError::Reset(code)));
    receive.stop(other).unwrap();
    assert_eq!(back.stopped().await, Ok(Some(other)));
    let write = back.write(b"late").await;
    assert_eq!(write, Err(WriteError::Stopped(other)));
    let read = receive.read(&mut [0; 9]).await;
    assert_eq!(read, Err(ReadError::ClosedStream));
    let error = std::io::Error::from(write.unwrap_err());
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn received_reset_ends_with_the_end_of_the_stream() {
    let pair = Pair::new().await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"all").await.unwrap();
    let mut receive = pair.server.accept_uni().await.unwrap();
    let (reset, ()) = tokio::join!(receive.received_reset(), async {
        // The reader waits already.
        tokio::task::yield_now().await;
        send.finish().unwrap();
    });
    assert_eq!(reset, Ok(None));
    assert_eq!(receive.read_to_end(2).await, Err(ReadToEndError::TooLong));
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(b"all").await.unwrap();
    send.finish().unwrap();
    let mut receive = pair.server.accept_uni().await.unwrap();
    let exact = receive.read_exact(&mut [0; 4]).await;
    assert_eq!(exact, Err(ReadExactError::FinishedEarly(3)));
    pair.server.close(3u32.into(), b"done");
    let mut send = pair.client.open_uni().await;
    while let Ok(open) = &mut send {
        // The close is on its way.
        let _ = open.stopped().await;
        send = pair.client.open_uni().await;
    }
    assert!(matches!(send, Err(ConnectionError::ApplicationClosed(_))));
}

#[tokio::test]
async fn unordered_chunks_cover_the_stream_and_end_ordered_reading() {
    let pair = Pair::new().await;
    let mut send = pair.client.open_uni().await.unwrap();
    send.write_all(&[5; 50_000]).await.unwrap();
    send.finish().unwrap();
    let mut receive = pair.server.accept_uni().await.unwrap();
    let mut seen = vec![0; 50_000];
    while let Some(chunk) = receive.read_chunk(usize::MAX, false).await.unwrap() {
        let start = chunk.offset as usize;
        seen[start..start + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
        if start == 0 {
            let ordered = receive.read(&mut [0; 9]).await;
            assert_eq!(ordered, Err(ReadError::IllegalOrderedRead));
        }
    }
    assert!(seen.iter().all(|&byte| byte == 5));
}
