use super::*;
use crate::space::sent::FrameLists;

const NOW: Time = Time::ZERO;
const RTT: Duration = Duration::from_millis(10);

/// Returns the flow control of a connection whose two ends grant each other 100 bytes.
fn flow() -> ConnectionFlow {
    let mut flow = ConnectionFlow::new(100, 100);
    assert!(flow.on_max_data(100));
    flow
}

/// Writes the frames that are due into a packet of `room` bytes, and returns them.
fn written(flow: &mut ConnectionFlow, has_data: bool, room: usize) -> Vec<SentFrame> {
    let (mut bytes, mut lists) = (vec![0; room], FrameLists::default());
    let mut packet = PacketBuilder::new(&mut bytes, &mut lists);
    flow.write_frames(NOW, RTT, has_data, &mut packet);
    let ((_, frames), mut sent) = (packet.finish(), Vec::new());
    frames.for_each(&lists, |frame| sent.push(frame));
    sent
}

fn read(flow: &mut ConnectionFlow, len: u64) {
    flow.receive.check(len).expect("within the window");
    flow.receive.on_received(NOW, len);
    flow.receive.on_arrived(NOW, len, len);
    flow.receive.on_consumed(len);
    flow.update_credit();
}

#[test]
fn used_window_is_announced_again() {
    let mut flow = flow();
    read(&mut flow, 49);
    assert_eq!(flow.due_frames(), 0);
    read(&mut flow, 1);
    assert_eq!(flow.due_frames(), 1);
    assert_eq!(written(&mut flow, false, 20), [], "no room");
    let raised = SentFrame::MaxData { limit: 150 };
    assert_eq!(written(&mut flow, false, 100), [raised]);
    assert_eq!(flow.due_frames(), 0);
    flow.on_max_data_lost();
    assert_eq!(written(&mut flow, false, 100), [raised]);
    flow.receive.on_limit_acked(150);
    flow.on_max_data_lost();
    assert_eq!(flow.due_frames(), 0, "another copy was acknowledged");
}

#[test]
fn peer_behind_a_lost_announcement_gets_it_again() {
    let mut flow = flow();
    read(&mut flow, 50);
    written(&mut flow, false, 100);
    flow.on_data_blocked(NOW + RTT / 2, RTT, 100);
    assert_eq!(flow.due_frames(), 0, "it may be in flight");
    flow.on_data_blocked(NOW + RTT, RTT, 150);
    assert_eq!(flow.due_frames(), 0, "the peer has the limit");
    flow.on_data_blocked(NOW + RTT, RTT, 100);
    assert_eq!(flow.due_frames(), 1);
}

#[test]
fn used_up_credit_is_signalled_once_per_limit() {
    let mut flow = flow();
    assert!(!flow.signal_blocked());
    flow.send.consume(100);
    assert!(flow.signal_blocked());
    assert!(!flow.signal_blocked());
    assert_eq!(
        written(&mut flow, true, 100),
        [SentFrame::DataBlocked { limit: 100 }]
    );
    assert!(flow.on_data_blocked_lost());
    assert!(flow.signal_blocked());
    assert!(flow.on_max_data(200));
    assert_eq!(flow.due_frames(), 0, "the peer has answered");
    assert!(!flow.on_max_data(200));
}

#[test]
fn signal_is_dropped_without_data() {
    let mut flow = flow();
    flow.send.consume(100);
    assert!(flow.signal_blocked());
    assert_eq!(written(&mut flow, false, 100), []);
    assert_eq!(flow.due_frames(), 0);
}

#[test]
fn withdrawn_signal_may_be_requested_again() {
    let mut flow = flow();
    flow.send.consume(100);
    assert!(flow.signal_blocked());
    flow.withdraw_blocked();
    assert_eq!(flow.due_frames(), 0);
    assert!(flow.signal_blocked());
}

#[test]
fn no_frame_is_due_after_the_end() {
    let mut flow = flow();
    read(&mut flow, 50);
    flow.send.consume(100);
    flow.signal_blocked();
    flow.end();
    assert_eq!(flow.due_frames(), 0);
    read(&mut flow, 50);
    flow.on_max_data_lost();
    assert_eq!(flow.due_frames(), 0);
}
