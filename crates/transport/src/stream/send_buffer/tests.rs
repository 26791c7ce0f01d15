use proptest::prelude::*;

use super::*;
use crate::stream::StreamsConfig;
use crate::stream::chunk_pool::ChunkPool;

fn buffers() -> Buffers {
    Buffers::new(ChunkPool::new(4), &StreamsConfig::default())
}

fn span(offset: u64, len: u64, fin: bool) -> Span {
    Span { offset, len, fin }
}

fn send_new(buffer: &mut SendBuffer, len: usize) -> (Span, Vec<u8>) {
    let next = buffer.next_unsent();
    let mut out = vec![0; len];
    let fin = next.fin && len as u64 == next.len;
    buffer.send_new(&mut out, fin);
    (span(next.offset, len as u64, fin), out)
}

fn send_lost(buffer: &mut SendBuffer, max: usize) -> (Span, Vec<u8>) {
    let lost = buffer.next_lost().unwrap();
    let len = lost.len.min(max as u64);
    let span = span(lost.offset, len, lost.fin && len == lost.len);
    let mut out = vec![0; len as usize];
    buffer.send_lost(span, &mut out);
    (span, out)
}

#[test]
fn bytes_go_out_in_order_and_leave_when_acknowledged() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(b"hello world", &mut buffers);
    assert_eq!((buffer.unsent(), buffer.retained()), (11, 11));
    assert_eq!(
        send_new(&mut buffer, 5),
        (span(0, 5, false), b"hello".to_vec())
    );
    assert_eq!(
        send_new(&mut buffer, 6),
        (span(5, 6, false), b" world".to_vec())
    );
    assert_eq!(
        (buffer.unsent(), buffer.retained(), buffer.sent()),
        (0, 11, 11)
    );
    buffer.on_acked(span(0, 5, false), &mut buffers);
    assert_eq!(buffer.retained(), 6);
    buffer.on_acked(span(5, 6, false), &mut buffers);
    assert_eq!((buffer.retained(), buffer.memory()), (0, 0));
}

#[test]
fn fin_is_sent_lost_and_acknowledged_like_a_byte() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(b"ab", &mut buffers);
    buffer.finish();
    assert_eq!(send_new(&mut buffer, 2).0, span(0, 2, true));
    assert!(buffer.is_all_sent());
    buffer.on_lost(span(0, 2, true));
    assert_eq!(buffer.next_lost(), Some(span(0, 2, true)));
    assert_eq!(send_lost(&mut buffer, 1).0, span(0, 1, false));
    assert_eq!(buffer.next_lost(), Some(span(1, 1, true)));
    assert_eq!(send_lost(&mut buffer, 9).0, span(1, 1, true));
    buffer.on_acked(span(1, 1, true), &mut buffers);
    assert!(!buffer.is_all_acked());
    buffer.on_acked(span(0, 1, false), &mut buffers);
    assert!(buffer.is_all_acked());
}

#[test]
fn bare_fin_follows_what_was_sent() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    assert!(!buffer.is_fin_due());
    buffer.write(b"a", &mut buffers);
    send_new(&mut buffer, 1);
    buffer.finish();
    assert!(buffer.is_fin_due());
    assert_eq!(send_new(&mut buffer, 0).0, span(1, 0, true));
    assert!(!buffer.is_fin_due());
    buffer.on_lost(span(1, 0, true));
    assert_eq!(buffer.next_lost(), Some(span(1, 0, true)));
    buffer.on_acked(span(0, 1, false), &mut buffers);
    assert!(!buffer.is_all_acked());
    buffer.on_acked(span(1, 0, true), &mut buffers);
    assert!(buffer.is_all_acked() && !buffer.has_lost());
}

#[test]
fn neighbouring_losses_become_one_span() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(&[1; 100], &mut buffers);
    for _ in 0..10 {
        send_new(&mut buffer, 10);
    }
    buffer.on_lost(span(20, 10, false));
    buffer.on_lost(span(40, 10, false));
    buffer.on_lost(span(30, 10, false));
    assert_eq!(buffer.next_lost(), Some(span(20, 30, false)));
}

#[test]
fn loss_after_acknowledgement_of_the_repetition_is_no_loss() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(&[1; 100], &mut buffers);
    for _ in 0..10 {
        send_new(&mut buffer, 10);
    }
    buffer.on_acked(span(20, 10, false), &mut buffers);
    buffer.on_acked(span(40, 5, false), &mut buffers);
    buffer.on_lost(span(10, 40, false));
    assert_eq!(buffer.next_lost(), Some(span(10, 10, false)));
    assert_eq!(send_lost(&mut buffer, 99).0, span(10, 10, false));
    assert_eq!(send_lost(&mut buffer, 99).0, span(30, 10, false));
    assert_eq!(send_lost(&mut buffer, 99).0, span(45, 5, false));
    assert!(!buffer.has_lost());
}

#[test]
fn late_acknowledgement_undoes_loss() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(&[1; 10], &mut buffers);
    send_new(&mut buffer, 10);
    buffer.on_lost(span(0, 10, false));
    assert!(buffer.has_lost());
    buffer.on_acked(span(0, 10, false), &mut buffers);
    assert!(!buffer.has_lost());
}

#[test]
fn small_writes_share_a_small_buffer() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(b"x", &mut buffers);
    assert_eq!((buffer.chunks.len(), buffer.memory()), (1, 64));
    for _ in 0..63 {
        buffer.write(b"x", &mut buffers);
    }
    assert_eq!((buffer.chunks.len(), buffer.memory()), (1, 64));
}

#[test]
fn bulk_goes_to_pooled_chunks() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(&vec![1; 256 << 10], &mut buffers);
    assert_eq!((buffer.chunks.len(), buffer.memory()), (4, 256 << 10));
}

#[test]
fn shared_bytes_are_not_copied_unless_few() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    let mut large = Bytes::from(vec![1; 2000]);
    let address = large.as_ptr();
    buffer.write_shared(&mut large, 2000, &mut buffers);
    buffer.write_shared(&mut Bytes::from_static(b"tail"), 4, &mut buffers);
    assert_eq!(buffer.chunks[0].chunk.as_slice().as_ptr(), address);
    assert!(matches!(buffer.chunks[1].chunk, Chunk::Open(_)));
    assert_eq!(
        send_new(&mut buffer, 2004).1,
        [&[1; 2000][..], b"tail"].concat()
    );
}

#[test]
fn discard_and_recycle_leave_nothing() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    buffer.write(&[1; 100], &mut buffers);
    send_new(&mut buffer, 50);
    buffer.on_lost(span(0, 20, false));
    buffer.discard(&mut buffers);
    assert_eq!(
        (buffer.retained(), buffer.unsent(), buffer.memory()),
        (0, 0, 0)
    );
    assert!(!buffer.has_lost());
    buffer.finish();
    buffer.recycle(&mut buffers);
    assert!(!buffer.is_finished());
    buffer.write(b"new", &mut buffers);
    assert_eq!(
        send_new(&mut buffer, 3),
        (span(0, 3, false), b"new".to_vec())
    );
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    WriteShared(usize),
    Finish,
    SendNew(usize),
    SendLost(usize),
    Acked(prop::sample::Index),
    Lost(prop::sample::Index),
    /// A packet that was declared lost is acknowledged after all.
    AckedLate(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..5000).prop_map(Step::Write),
        1 => (0usize..5000).prop_map(Step::WriteShared),
        1 => Just(Step::Finish),
        8 => (0usize..1500).prop_map(Step::SendNew),
        4 => (0usize..1500).prop_map(Step::SendLost),
        4 => any::<prop::sample::Index>().prop_map(Step::Acked),
        3 => any::<prop::sample::Index>().prop_map(Step::Lost),
        1 => any::<prop::sample::Index>().prop_map(Step::AckedLate),
    ]
}

/// One entry per position, the FIN included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Unsent,
    Sent,
    Lost,
    Acked,
}

#[derive(Default)]
struct Model {
    bytes: Vec<u8>,
    fates: Vec<Fate>,
    flying: Vec<Span>,
    given_up: Vec<Span>,
}

impl Model {
    fn write(&mut self, len: usize) -> Vec<u8> {
        let data: Vec<u8> = (self.bytes.len()..self.bytes.len() + len)
            .map(|i| ((i * 131) >> 3) as u8)
            .collect();
        self.bytes.extend(&data);
        self.fates.resize(self.bytes.len(), Fate::Unsent);
        data
    }

    fn check_sent(&self, span: Span, out: &[u8]) {
        let from = span.offset as usize;
        assert_eq!(out, &self.bytes[from..from + span.len as usize]);
    }

    fn mark(&mut self, span: Span, to: impl Fn(Fate) -> Fate) {
        for position in span.positions() {
            let fate = &mut self.fates[position as usize];
            *fate = to(*fate);
        }
    }

    fn check(&self, buffer: &SendBuffer) {
        let unsent = self.fates[..self.bytes.len()]
            .iter()
            .filter(|&&fate| fate == Fate::Unsent);
        assert_eq!(buffer.unsent(), unsent.count() as u64);
        let acked_to = self
            .fates
            .iter()
            .take_while(|&&fate| fate == Fate::Acked)
            .count();
        assert_eq!(
            buffer.retained(),
            self.bytes.len().saturating_sub(acked_to) as u64
        );
        let lost: Vec<usize> = buffer
            .lost
            .iter()
            .flat_map(|r| r.start as usize..r.end as usize)
            .collect();
        let expected: Vec<usize> = (0..self.fates.len())
            .filter(|&i| self.fates[i] == Fate::Lost)
            .collect();
        assert_eq!(lost, expected);
        let all = buffer.is_finished() && self.fates.iter().all(|&fate| fate == Fate::Acked);
        assert_eq!(buffer.is_all_acked(), all);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_a_list_of_fates(steps in prop::collection::vec(step(), 1..150)) {
        let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Write(len) if !buffer.is_finished() => {
                    buffer.write(&model.write(len), &mut buffers);
                }
                Step::WriteShared(len) if !buffer.is_finished() => {
                    buffer.write_shared(&mut model.write(len).into(), len, &mut buffers);
                }
                Step::Finish if !buffer.is_finished() => {
                    buffer.finish();
                    model.fates.push(Fate::Unsent);
                }
                Step::SendNew(max) if buffer.unsent() > 0 || buffer.is_fin_due() => {
                    let len = (buffer.unsent() as usize).min(max);
                    let (span, out) = send_new(&mut buffer, len);
                    model.check_sent(span, &out);
                    model.mark(span, |fate| { assert_eq!(fate, Fate::Unsent); Fate::Sent });
                    model.flying.push(span);
                }
                Step::SendLost(max) if buffer.has_lost() => {
                    let (span, out) = send_lost(&mut buffer, max);
                    model.check_sent(span, &out);
                    model.mark(span, |fate| { assert_eq!(fate, Fate::Lost); Fate::Sent });
                    model.flying.push(span);
                }
                Step::Acked(index) if !model.flying.is_empty() => {
                    let span = model.flying.swap_remove(index.index(model.flying.len()));
                    buffer.on_acked(span, &mut buffers);
                    model.mark(span, |_| Fate::Acked);
                }
                Step::Lost(index) if !model.flying.is_empty() => {
                    let span = model.flying.swap_remove(index.index(model.flying.len()));
                    buffer.on_lost(span);
                    model.mark(span, |fate| if fate == Fate::Acked { fate } else { Fate::Lost });
                    model.given_up.push(span);
                }
                Step::AckedLate(index) if !model.given_up.is_empty() => {
                    let span = model.given_up.swap_remove(index.index(model.given_up.len()));
                    buffer.on_acked(span, &mut buffers);
                    model.mark(span, |_| Fate::Acked);
                }
                _ => {}
            }
            model.check(&buffer);
        }
    }
}

/// Attack A88: the headers of frames between pieces of shared content.
#[test]
fn few_bytes_behind_shared_content_take_little_memory() {
    let (mut buffer, mut buffers) = (SendBuffer::default(), buffers());
    let content = Bytes::from(vec![7; 64 << 10]);
    for _ in 0..10 {
        buffer.write_shared(&mut content.clone(), content.len(), &mut buffers);
        buffer.write(&[1, 2, 3, 4, 5], &mut buffers);
    }
    let beside = buffer.memory() - 10 * content.len();
    assert!(beside <= 10 * 64, "{beside} bytes for 50");
}
