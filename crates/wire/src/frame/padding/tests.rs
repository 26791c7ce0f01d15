use crate::frame::Frame;
use crate::frame::testing::frames;

#[test]
fn a_run_of_padding_is_one_item_of_any_length() {
    for len in [1, 2, 15, 16, 17, 18, 31, 32, 33, 1200, 65527] {
        let mut bytes = vec![0; len];
        assert_eq!(frames(&bytes), [Ok(Frame::Padding(len))], "{len}");
        bytes.push(0x01);
        assert_eq!(
            frames(&bytes),
            [Ok(Frame::Padding(len)), Ok(Frame::Ping)],
            "{len}"
        );
    }
}

#[test]
fn padding_may_come_before_between_and_after() {
    let bytes = [0, 0, 1, 0, 1, 0, 0, 0];
    let expected = [
        Frame::Padding(2),
        Frame::Ping,
        Frame::Padding(1),
        Frame::Ping,
        Frame::Padding(3),
    ];
    assert_eq!(frames(&bytes), expected.map(Ok));
}
