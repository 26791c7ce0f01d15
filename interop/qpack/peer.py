"""ls-qpack, through pylsqpack, against courser's encoder and decoder.

usage: peer.py PEER QIFS: the program that speaks for courser, and the set of header lists.
"""

import io
import struct
import subprocess
import sys
import tarfile

import pylsqpack

CAPACITY, BLOCKED = 4096, 16


def lists(text):
    """Header lists of a QIF: lines of name, tab, value; an empty line after each."""
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        fields = [tuple(part.encode() for part in line.split("\t", 1)) for line in lines]
        if fields:
            yield fields


class Peer:
    """courser's end, as another process."""

    def __init__(self, program, mode):
        self.process = subprocess.Popen(
            [program, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def write(self, stream, block):
        self.process.stdin.write(struct.pack(">QI", stream, len(block)) + block)

    def ask(self, stream, block):
        """What the peer says on its own stream, and what it makes of this block."""
        self.write(stream, block)
        self.process.stdin.flush()
        _, own = self.read()
        answered, made = self.read()
        assert answered == stream, f"stream {answered} instead of {stream}"
        return own, made

    def read(self):
        head = self.process.stdout.read(12)
        assert len(head) == 12, "courser gave up"
        stream, length = struct.unpack(">QI", head)
        return stream, self.process.stdout.read(length)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, "courser failed"


def as_list(fields):
    return b"".join(name + b"\t" + value + b"\n" for name, value in fields)


def courser_encodes(program, mode, headers):
    """Bytes of sections and of instructions."""
    peer, decoder = Peer(program, mode), pylsqpack.Decoder(CAPACITY, BLOCKED)
    sections = instructions = 0
    for number, fields in enumerate(headers):
        stream = 4 * number + 4
        encoder_stream, section = peer.ask(stream, as_list(fields))
        decoder.feed_encoder(encoder_stream)
        answers, decoded = decoder.feed_header(stream, section)
        assert decoded == fields, f"list {number}: {decoded} instead of {fields}"
        peer.write(0, answers)
        sections, instructions = sections + len(section), instructions + len(encoder_stream)
    peer.close()
    return sections, instructions


def courser_decodes(program, headers):
    """Bytes of sections and of instructions."""
    peer, encoder = Peer(program, "decode"), pylsqpack.Encoder()
    start = encoder.apply_settings(CAPACITY, BLOCKED)
    peer.write(0, start)
    sections, instructions = 0, len(start)
    for number, fields in enumerate(headers):
        stream = 4 * number + 4
        encoder_stream, section = encoder.encode(stream, fields)
        peer.write(0, encoder_stream)
        answers, decoded = peer.ask(stream, section)
        assert decoded == as_list(fields), f"list {number}: {decoded} instead of {fields}"
        encoder.feed_decoder(answers)
        sections, instructions = sections + len(section), instructions + len(encoder_stream)
    peer.close()
    return sections, instructions


def main(program, qifs):
    with tarfile.open(qifs) as archive:
        members = [member for member in archive if member.name.endswith(".qif")]
        texts = {
            member.name.rsplit("/", 1)[-1]: archive.extractfile(member).read().decode("latin-1")
            for member in members
        }
    row = "{:<16} {:>6} {:>9} | {:>9} {:>9} | {:>9}"
    print(row.format("lists", "", "plain", "dynamic", "static", "ls-qpack"))
    for name, text in sorted(texts.items()):
        headers = [
            [(field.decode().encode("latin-1"), value.decode().encode("latin-1")) for field, value in fields]
            for fields in lists(text)
        ]
        plain = sum(len(name) + len(value) for fields in headers for name, value in fields)
        dynamic = sum(courser_encodes(program, "encode", headers))
        static = sum(courser_encodes(program, "encode-static", headers))
        other = sum(courser_decodes(program, headers))
        print(row.format(name, len(headers), plain, dynamic, static, other))
    print("all lists came back as they were sent, both ways")


if __name__ == "__main__":
    main(*sys.argv[1:])
