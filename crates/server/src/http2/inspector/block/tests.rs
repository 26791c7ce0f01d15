use std::collections::VecDeque;

use super::*;
use crate::http2::inspector::kinds::Value;

type Line = (Vec<u8>, Vec<u8>);

/// A table with its text, as a decoder has it (RFC 7541 §2.3, §4).
#[derive(Default, PartialEq, Eq, Debug)]
struct Reference {
    entries: VecDeque<Line>,
    max: usize,
}

impl Reference {
    fn new() -> Self {
        Self {
            max: 4096,
            ..Self::default()
        }
    }

    fn get(&self, index: usize) -> Line {
        match STATIC_TABLE.get(index - 1) {
            Some((name, value)) => (name.as_bytes().to_vec(), value.as_bytes().to_vec()),
            None => self.entries[index - 62].clone(),
        }
    }

    fn sizes(&self) -> Vec<usize> {
        let size = |(name, value): &Line| name.len() + value.len() + 32;
        self.entries.iter().map(size).collect()
    }

    fn evict(&mut self) {
        while self.sizes().iter().sum::<usize>() > self.max {
            self.entries.pop_back();
        }
    }

    fn insert(&mut self, line: Line) {
        self.entries.push_front(line);
        self.evict();
    }

    fn decode(&mut self, block: &[u8]) -> Vec<Line> {
        let mut reader = Reader(block);
        let mut lines = Vec::new();
        while let Some(line) = reader.line() {
            let (form, number) = line.expect("decodable");
            match form {
                Form::SizeUpdate => {
                    self.max = number;
                    self.evict();
                    continue;
                }
                Form::Indexed => {
                    lines.push(self.get(number));
                    continue;
                }
                Form::Inserted | Form::Literal => {}
            }
            let mut scratch = Vec::new();
            let name = match number {
                0 => reader.string(&mut scratch).expect("a name").to_vec(),
                _ => self.get(number).0,
            };
            let value = reader.string(&mut scratch).expect("a value").to_vec();
            if form == Form::Inserted {
                self.insert((name.clone(), value.clone()));
            }
            lines.push((name, value));
        }
        lines
    }
}

/// A client's encoder that chooses forms at random.
struct Client {
    table: Reference,
    random: u64,
}

impl Client {
    /// Returns a number below `bound`.
    fn random(&mut self, bound: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % bound
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random(of.len())]
    }

    fn encode(&mut self, lines: &[Line]) -> Vec<u8> {
        let mut block = Vec::new();
        if self.random(20) == 0 {
            self.table.max = self.random(4097);
            self.table.evict();
            put_integer(&mut block, 0x20, 5, self.table.max);
        }
        for line in lines {
            let indices = 1..=61 + self.table.entries.len();
            let whole = indices
                .clone()
                .find(|&index| self.table.get(index) == *line);
            let named = indices
                .rev()
                .find(|&index| self.table.get(index).0 == line.0);
            if let Some(index) = whole
                && self.random(4) > 0
            {
                put_integer(&mut block, 0x80, 7, index);
                continue;
            }
            let (pattern, prefix) = [(0x40, 6), (0x40, 6), (0, 4), (0x10, 4)][self.random(4)];
            match named {
                Some(index) if self.random(4) > 0 => {
                    put_integer(&mut block, pattern, prefix, index);
                }
                _ => {
                    block.push(pattern);
                    put_string(&mut block, &line.0);
                }
            }
            put_string(&mut block, &line.1);
            if pattern == 0x40 {
                self.table.insert(line.clone());
            }
        }
        block
    }

    /// Returns the lines of a request that is valid, except that some of its parts may be chosen from `bad` ones.
    fn request(&mut self, bad: usize) -> Vec<Line> {
        let line = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let mut lines = vec![
            line(":method", self.pick(&["GET", "POST", "PURGE"])),
            line(":scheme", "https"),
            line(
                ":path",
                self.pick(&["/", "/a", "/a?b=\"<c>\"", "/`", "/index.html"]),
            ),
            line(":authority", self.pick(&["localhost", "example.org:443"])),
        ];
        for _ in 0..self.random(5) {
            let name = self.pick(&["x", "user-agent", "accept", "cookie", "x-longer-name"]);
            let len = self.random(4) * self.random(400);
            lines.push(line(name, &"v".repeat(len)));
        }
        if bad > 0 && self.random(bad) == 0 {
            let at = self.random(lines.len() + 1);
            lines.insert(
                at,
                match self.random(8) {
                    0 => line("X", "upper"),
                    1 => line("x", "a\0b"),
                    2 => line(":path", "/a b"),
                    3 => line(":path", "/a#b"),
                    4 => line("connection", "close"),
                    5 => line(":status", "200"),
                    6 => line("", "v"),
                    _ => line(":unknown", ""),
                },
            );
        }
        lines
    }
}

/// Returns the reason why lines are no valid request.
fn is_malformed(lines: &[Line]) -> bool {
    let mut section = Section::default();
    let is_valid = lines.iter().all(|(name, value)| {
        Kind::of_name(name).is_some_and(|kind| match kind.judge(value) {
            Value::Valid(kind) => section.add(kind),
            Value::Escaped(_) => section.add(kind),
            Value::Invalid(_) => false,
        })
    });
    !is_valid || !section.is_request()
}

#[test]
fn valid_blocks_pass_unchanged_and_malformed_ones_become_marked_ones_in_any_sequence() {
    for seed in 0..200 {
        let mut client = Client {
            table: Reference::new(),
            random: seed,
        };
        // Half of the connections have no malformed request.
        let bad = [0, 3][seed as usize % 2];
        let (mut blocks, mut h2) = (Blocks::new(65_536), Reference::new());
        let marks = Marks::default();
        for number in 0..100 {
            let lines = client.request(bad);
            let block = client.encode(&lines);
            let outcome = blocks.read(&block, Part::Request, false, &marks);
            let received = match outcome.expect("decodable") {
                Outcome::Unchanged => block,
                Outcome::Changed { block, .. } => block,
            };
            let mut seen = h2.decode(&received);
            let what = format!("seed {seed}, block {number}: {lines:?}");
            assert_eq!(h2.sizes(), client.table.sizes(), "{what}");
            assert_eq!(blocks.table.sizes(), client.table.sizes(), "{what}");
            let mark = seen.pop_if(|(name, _)| name == b"courser-mark");
            if is_malformed(&lines) {
                let (_, mark) = mark.expect("malformed requests are marked");
                assert_eq!(mark[16], b'm', "{what}");
                assert!(!is_malformed(&seen), "{what}: {seen:?}");
                continue;
            }
            let path = |lines: &[Line]| lines.iter().position(|(name, _)| name == b":path");
            let place = path(&lines).expect("a path");
            if let Value::Escaped(escaped) = Kind::Path.judge(&lines[place].1) {
                let (_, mark) = mark.expect("targets are marked");
                assert_eq!(mark[16..], [b"t", &escaped[..]].concat(), "{what}");
                assert_eq!(seen[place].1.len(), lines[place].1.len(), "{what}");
                seen[place].1.clone_from(&lines[place].1);
            } else {
                assert_eq!(mark, None, "{what}");
            }
            assert_eq!(seen, lines, "{what}");
        }
    }
}

#[test]
fn trailers_with_pseudo_fields_are_malformed() {
    let mut blocks = Blocks::new(65_536);
    let mut read = |block: &[u8]| blocks.read(block, Part::Trailers, false, &Marks::default());
    assert_eq!(read(b"\x40\x01x\x011"), Ok(Outcome::Unchanged));
    let Ok(Outcome::Changed {
        block,
        is_malformed: true,
    }) = read(b"\x44\x02/a\x00\x01x\x011")
    else {
        panic!("not malformed");
    };
    let lines = Reference::new().decode(&block);
    assert_eq!(lines, [(b"xxxxx".to_vec(), b"xx".to_vec())]);
    assert_eq!(blocks.table.sizes(), [32 + 7, 32 + 2]);
}

#[test]
fn invalid_encodings_are_undecodable() {
    for block in [
        &b"\xff\x80\x80\x80\x80\x80\x01"[..],
        b"\xbe",
        b"\x80",
        b"\x40",
        b"\x40\x05x",
        b"\x3f\xff\xff\x03",
        b"\x82\x20",
        b"\x40\x01X\x01a\x20",
        b"\x00\x81\x00\x00",
    ] {
        let outcome = Blocks::new(65_536).read(block, Part::Request, false, &Marks::default());
        assert_eq!(outcome, Err(Undecodable), "{block:x?}");
    }
}

/// Limit K411: a byte may be a field.
#[test]
fn lines_of_a_block_are_limited() {
    for is_malformed in [false, true] {
        let mut blocks = Blocks::new(4096);
        let mut read = |lines: usize| {
            // `accept` without a value.
            let block = [&b"\x82\x87\x84"[..], &vec![0x93; lines - 3]].concat();
            blocks.read(&block, Part::Request, is_malformed, &Marks::default())
        };
        assert!(read(4 * 4096 / 32).is_ok());
        assert_eq!(read(4 * 4096 / 32 + 2), Err(Undecodable));
    }
}

/// The lengths of names are those of the static table.
#[test]
fn static_entries_have_their_kinds() {
    for (index, (name, value)) in (1..).zip(STATIC_TABLE) {
        assert_eq!(STATIC_LEN[index], name.len(), "{name}");
        let kind = Kind::of_static(index);
        let named = Kind::of_name(name.as_bytes());
        assert_eq!(kind, named, "{name}");
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Status) {
            let is_valid = kind.judge(value.as_bytes()) == Value::Valid(kind);
            assert_eq!(is_valid, Kind::has_static_value(index), "{name}");
        }
    }
}

const STATIC_TABLE: [(&str, &str); STATIC] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];
