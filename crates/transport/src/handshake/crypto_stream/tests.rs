use super::*;
use crate::space::sent::FrameLists;
use proptest::prelude::*;

fn frame(offset: u64, data: &[u8]) -> Crypto<'_> {
    Crypto { offset, data }
}

#[test]
fn reordered_pieces_are_read_in_order() {
    let mut stream = CryptoStream::new(4096);
    stream.on_crypto_frame(&frame(4, b"efgh")).expect("fits");
    assert_eq!(stream.read(), None);
    stream.on_crypto_frame(&frame(0, b"abcd")).expect("fits");
    assert_eq!(stream.read().as_deref(), Some(&b"abcdefgh"[..]));
    assert!(!stream.has_unread());
}

#[test]
fn at_least_4096_bytes_out_of_order_are_buffered() {
    let mut stream = CryptoStream::new(16 * 1024);
    stream
        .on_crypto_frame(&frame(1, &[7; 4096]))
        .expect("RFC 9000 §7.5");
    assert_eq!(stream.buffered(), 4096);
}

#[test]
fn data_past_the_limit_is_crypto_buffer_exceeded() {
    let mut stream = CryptoStream::new(4096);
    let error = stream
        .on_crypto_frame(&frame(4096, b"x"))
        .expect_err("one too far");
    assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
    let error = stream
        .on_crypto_frame(&frame((1 << 62) - 2, b"x"))
        .expect_err("far too far");
    assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
    assert_eq!(stream.buffered(), 0);
}

#[test]
fn too_many_gaps_are_crypto_buffer_exceeded() {
    let mut stream = CryptoStream::new(4096);
    for gap in 0..MAX_PIECES as u64 {
        stream
            .on_crypto_frame(&frame(1 + gap * 2, b"x"))
            .expect("within the limit");
    }
    let error = stream
        .on_crypto_frame(&frame(3000, b"x"))
        .expect_err("one gap too many");
    assert_eq!(error.code, TransportErrorCode::CRYPTO_BUFFER_EXCEEDED);
}

fn sent(stream: &mut CryptoStream, room: usize) -> Vec<(u64, Vec<u8>)> {
    let mut lists = FrameLists::default();
    let mut buffer = vec![0; room];
    let mut packet = PacketBuilder::new(&mut buffer, &mut lists);
    stream.write_frames(&mut packet);
    let (len, frames) = packet.finish();
    frames.release(&mut lists);
    courser_wire::frame::Frames::new(&buffer[..len])
        .map(|frame| match frame.expect("what we wrote") {
            courser_wire::frame::Frame::Crypto(crypto) => (crypto.offset, crypto.data.to_vec()),
            other => panic!("unexpected {other:?}"),
        })
        .collect()
}

#[test]
fn lost_bytes_are_sent_before_new_ones() {
    let mut stream = CryptoStream::new(4096);
    stream.write(&[1; 40]);
    assert_eq!(sent(&mut stream, 43), vec![(0, vec![1; 40])]);
    stream.write(&[2; 10]);
    stream.on_lost(20, 20);
    assert_eq!(
        sent(&mut stream, 100),
        vec![(20, vec![1; 20]), (40, vec![2; 10])]
    );
    stream.on_acked(0, 50);
    assert_eq!(stream.unacked(), 0);
    stream.on_lost(0, 50);
    assert!(
        !stream.has_frames_to_send(),
        "acknowledged bytes are never lost"
    );
}

proptest! {
    #[test]
    fn any_order_with_overlaps_gives_the_bytes(
        cuts in prop::collection::vec((0usize..300, 1usize..40), 0..60)
    ) {
        let all: Vec<u8> = (0..340u32).map(|at| (at % 251) as u8).collect();
        let mut stream = CryptoStream::new(4096);
        let mut read = Vec::new();
        let mut exceeded = false;
        for (start, len) in cuts {
            exceeded |= stream.on_crypto_frame(&frame(start as u64, &all[start..start + len])).is_err();
            if let Some(bytes) = stream.read() {
                read.extend(bytes);
            }
            prop_assert!(stream.buffered() <= all.len());
            prop_assert!(stream.pieces.len() <= MAX_PIECES);
        }
        prop_assert_eq!(&read[..], &all[..read.len()]);
        if !exceeded {
            stream.on_crypto_frame(&frame(0, &all)).expect("no new gap");
            read.extend(stream.read().unwrap_or_default());
            prop_assert_eq!(read, all);
        }
    }
}
