//! Huffman coding of strings (RFC 9204 §4.1.2, RFC 7541 §5.2).

#[path = "huffman_table.rs"]
mod table;

use self::table::CODES;

/// Returns the length of the encoding of `text` in bytes.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(CODES[usize::from(byte)].1))
        .sum();
    bits.div_ceil(8)
}

/// Appends the encoding of `text`, padded with ones.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut bits: u64 = 0;
    let mut count = 0;
    for &byte in text {
        let (code, len) = CODES[usize::from(byte)];
        bits = bits << len | u64::from(code);
        count += u32::from(len);
        // A code has at most thirty bits, so four bytes at a time never overflow.
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    while count >= 8 {
        count -= 8;
        out.push((bits >> count) as u8); // The next eight bits.
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

/// Decodes `coded` and appends the result to `out`. Fails if the padding is longer than seven bits
/// or not all ones, or if a code is not in the table, which includes the end-of-string symbol.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    // The shortest code has five bits.
    out.reserve(coded.len() * 8 / 5);
    let mut bits: u64 = 0;
    let mut count = 0;
    let mut input = coded.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = input.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        match TREE.walk(bits) {
            Some((byte, len)) if len <= count => {
                out.push(byte);
                bits <<= len;
                count -= len;
            }
            // The rest must be padding: fewer than eight ones.
            _ if count < 8 && is_ones(bits, count) => return Ok(()),
            Some(_) => return Err("padding of a Huffman string is not a prefix of EOS"),
            None => return Err("invalid Huffman code"),
        }
    }
}

fn is_ones(bits: u64, count: u32) -> bool {
    count == 0 || bits >> (64 - count) == (1 << count) - 1
}

/// The decoding tree, built at compile time. Each node consumes eight bits.
struct Tree {
    /// Each element is either [`LEAF`] with the bits consumed in this node and the decoded byte, or
    /// the number of the next node. Zero means no code, because no code leads back to the root.
    nodes: [[u16; 256]; NODES],
}

/// The root, and one node for each distinct prefix of 8, 16 or 24 bits of a longer code.
const NODES: usize = 15;
const LEAF: u16 = 0x8000;

static TREE: Tree = Tree::new();

impl Tree {
    const fn new() -> Self {
        let mut nodes = [[0; 256]; NODES];
        let mut used = 1;
        let mut byte = 0;
        while byte < 256 {
            let (code, len) = CODES[byte];
            let mut node = 0;
            let mut left = len;
            while left > 8 {
                left -= 8;
                let slot = (code >> left & 0xff) as usize;
                if nodes[node][slot] == 0 {
                    nodes[node][slot] = used as u16;
                    used += 1;
                }
                node = nodes[node][slot] as usize;
            }
            // All bytes that begin with the remaining bits of the code.
            let first = ((code << (8 - left)) & 0xff) as usize;
            let mut slot = first;
            while slot < first + (1 << (8 - left)) {
                nodes[node][slot] = LEAF | (left as u16) << 8 | byte as u16;
                slot += 1;
            }
            byte += 1;
        }
        assert!(used == NODES, "number of nodes");
        Self { nodes }
    }

    /// Returns the byte whose code is at the top of `bits`, and the length of that code in bits.
    #[inline]
    fn walk(&self, mut bits: u64) -> Option<(u8, u32)> {
        let mut node = 0;
        let mut walked = 0;
        loop {
            let entry = self.nodes[node][(bits >> 56) as usize];
            if entry & LEAF != 0 {
                let len = u32::from(entry >> 8 & 0x7f);
                return Some((entry as u8, walked + len)); // The low byte.
            }
            if entry == 0 {
                return None;
            }
            node = usize::from(entry);
            walked += 8;
            bits <<= 8;
        }
    }
}

#[cfg(test)]
mod tests;
