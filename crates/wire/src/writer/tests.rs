use super::*;

#[test]
fn fields_are_written_in_order_and_in_network_byte_order() {
    let mut buffer = [0xee; 20];
    let mut writer = Writer::new(&mut buffer);
    writer.u8(1);
    writer.u16(0x0203);
    writer.u32(0x0405_0607);
    writer.u64(0x0809_0a0b_0c0d_0e0f);
    writer.bytes(&[16]);
    writer.zeros(2);
    writer.advance_with(1)[0] = 17;
    assert_eq!((writer.position(), writer.remaining()), (19, 1));
    let expected = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0, 17,
    ];
    assert_eq!(writer.written(), expected);
}

#[test]
fn bytes_after_the_written_ones_are_unchanged() {
    for value in [0x3f, 0x3fff, 0x3fff_ffff, MAX_VARINT] {
        let mut buffer = [0xee; 16];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(value);
        let end = writer.position();
        assert!(buffer[end..].iter().all(|&byte| byte == 0xee), "{value}");
    }
}

#[test]
fn length_prefixed_bytes_begin_with_a_varint() {
    let mut buffer = [0; 80];
    let mut writer = Writer::new(&mut buffer);
    writer.varint_bytes(&[7; 64]);
    assert_eq!(writer.written()[..3], [0x40, 64, 7]);
    assert_eq!(writer.position(), 66);
}

#[test]
#[should_panic(expected = "out of range")]
fn writing_past_the_end_panics() {
    Writer::new(&mut [0; 3]).u32(0);
}

#[test]
#[should_panic(expected = "does not fit its length")]
fn a_varint_too_long_for_its_length_panics() {
    Writer::new(&mut [0; 8]).varint_of_len(64, 1);
}

#[test]
#[should_panic(expected = "1, 2, 4 or 8 bytes")]
fn a_varint_of_three_bytes_panics() {
    Writer::new(&mut [0; 8]).varint_of_len(64, 3);
}
