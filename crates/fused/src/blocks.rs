//! Blocks one at a time: the path of every kernel for the header, and for text that does not fill a group.

#![allow(unsafe_code)]

use crate::processor::block::{self, Product, Vector};
use crate::schedule::{BLOCK_LEN, Block, PADDING, POWERS, Rounds, Schedule};
use crate::text::Text;

/// The round keys and the nonce of one packet.
pub(crate) struct Cipher<'a, const ROUNDS: usize> {
    pub(crate) rounds: &'a Rounds,
    pub(crate) nonce: Vector,
}

impl<'a, const ROUNDS: usize> Cipher<'a, ROUNDS> {
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn new(schedule: &'a Schedule, number: u128) -> Self {
        Self {
            rounds: &schedule.rounds,
            nonce: block::nonce(&schedule.iv, number),
        }
    }

    /// Encrypts or decrypts the block at an offset of the text, and returns its ciphertext.
    ///
    /// # Safety
    /// The text has a block from there on.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) unsafe fn single<const OPEN: bool>(&self, text: &Text<'_>, offset: usize) -> Vector {
        // SAFETY: the caller guarantees that the text has these bytes.
        let input = block::load(unsafe { text.block(offset) });
        let output = block::xor(self.key_stream(counter_at(offset)), input);
        // SAFETY: as above, and `input` was loaded.
        unsafe { text.write(offset, block::bytes(output)) };
        if OPEN { input } else { output }
    }

    /// Encrypts or decrypts the end of the text, which is less than a block.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn part<const OPEN: bool>(&self, text: &Text<'_>, offset: usize) -> Vector {
        let len = text.len - offset;
        let [mut input, mut output] = [[0; BLOCK_LEN]; 2];
        // SAFETY: the text has `len` bytes from `offset` on, which are fewer than a block.
        unsafe {
            text.from
                .add(offset)
                .copy_to_nonoverlapping(input.as_mut_ptr(), len)
        };
        let encrypted = block::xor(self.key_stream(counter_at(offset)), block::load(&input));
        block::store(&mut output, encrypted);
        // SAFETY: as above.
        unsafe {
            text.to
                .add(offset)
                .copy_from_nonoverlapping(output.as_ptr(), len)
        };
        if OPEN {
            return block::load(&input);
        }
        output[len..].fill(0);
        block::load(&output)
    }

    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn key_stream(&self, counter: usize) -> Vector {
        block::encrypt::<ROUNDS>(self.rounds, self.counter(counter))
    }

    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn counter(&self, counter: usize) -> Vector {
        block::with_counter(self.nonce, counter as u32)
    }
}

/// The hash of a sequence of blocks: a sum of products with descending powers.
pub(crate) struct Hash<'a> {
    powers: &'a [Block; POWERS + PADDING],
    /// Number of blocks until the end or the next reduction.
    left: usize,
    /// Number of blocks after that reduction.
    later: usize,
    /// The reduced hash of what came before. It is added to the next block.
    carry: Vector,
    sum: Product,
}

impl<'a> Hash<'a> {
    /// Starts the hash of a packet with its header. `len` is the length of the text.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn start(powers: &'a [Block; POWERS + PADDING], header: &[u8], len: usize) -> Self {
        let blocks = header.len().div_ceil(BLOCK_LEN) + len.div_ceil(BLOCK_LEN) + 1;
        let left = blocks.min(POWERS);
        let mut hash = Self {
            powers,
            left,
            later: blocks - left,
            carry: block::zero(),
            sum: Product::zero(),
        };
        let (full, rest) = header.as_chunks::<BLOCK_LEN>();
        for block in full {
            hash.absorb(block::load(block));
        }
        if !rest.is_empty() {
            hash.absorb(block::load_part(rest));
        }
        hash
    }

    /// Adds a group. `multiply` adds up the products of its blocks with as many powers.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn absorb_group<const N: usize>(
        &mut self,
        blocks: &[Block; N],
        multiply: impl FnOnce(&[Block; N], Vector, &[Block; N]) -> Product,
    ) {
        match self.powers[POWERS - self.left..POWERS].first_chunk() {
            Some(powers) => {
                let carry = std::mem::replace(&mut self.carry, block::zero());
                self.sum = self.sum.plus(multiply(blocks, carry, powers));
                self.count(N);
            }
            // The powers are used up before the end of the group.
            None => {
                for block in blocks {
                    self.absorb(block::load(block));
                }
            }
        }
    }

    /// Adds one block to the hash.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn absorb(&mut self, block: Vector) {
        let block = self.take_carry(block::reverse(block));
        let power = block::load(&self.powers[POWERS - self.left]);
        self.sum = self.sum.plus(Product::new(block, power));
        self.count(1);
    }

    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    fn take_carry(&mut self, block: Vector) -> Vector {
        let carry = std::mem::replace(&mut self.carry, block::zero());
        block::xor(block, carry)
    }

    /// Counts blocks, and reduces the sum when the powers are used up.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    fn count(&mut self, blocks: usize) {
        self.left -= blocks;
        if self.left == 0 && self.later > 0 {
            self.carry = self.sum.reduce();
            self.sum = Product::zero();
            self.left = self.later.min(POWERS);
            self.later -= self.left;
        }
    }

    /// Adds the block of the lengths and returns the hash.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx,aes,pclmulqdq"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) fn finish(mut self, lengths: Vector) -> Vector {
        let hash_key = block::load(&self.powers[POWERS - 1]);
        let lengths = self.take_carry(lengths);
        self.sum.plus(Product::new(lengths, hash_key)).reduce()
    }
}

/// Returns the counter of the block at an offset of the text. Counter 1 belongs to the tag.
#[inline]
pub(crate) fn counter_at(offset: usize) -> usize {
    offset / BLOCK_LEN + 2
}

/// Returns true if the counters of `blocks` blocks differ in their last byte only.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn is_without_carry(first: usize, blocks: usize) -> bool {
    first % 256 + blocks <= 256
}

/// Defines `run`, which seals and opens packets with the functions `group` and `multiply` of a kernel, for
/// groups of `GROUP` blocks.
macro_rules! kernel {
    ($features:literal) => {
        /// Encrypts or decrypts a text and returns the tag of its ciphertext.
        #[target_feature(enable = $features)]
        pub(crate) fn run<const ROUNDS: usize, const OPEN: bool>(
            schedule: &Schedule,
            number: u128,
            header: &[u8],
            text: &Text<'_>,
        ) -> block::Vector {
            let cipher = Cipher::<ROUNDS>::new(schedule, number);
            let mut hash = Hash::start(&schedule.powers, header, text.len);
            let tag_mask = cipher.key_stream(1);
            let mut offset = 0;
            // The last group that was sealed. It is hashed while the next one is encrypted, so that the
            // processor finds independent work nearby instead of waiting for the new ciphertext.
            let mut sealed = None;
            while offset + GROUP * BLOCK_LEN <= text.len {
                if OPEN {
                    // SAFETY: the text has a group at this offset.
                    hash.absorb_group(unsafe { text.input(offset) }, |a, b, c| multiply(a, b, c));
                }
                // SAFETY: as above.
                unsafe { group(&cipher, text, offset) };
                if !OPEN && let Some(before) = sealed.replace(offset) {
                    // SAFETY: as above, and the group was written before.
                    hash.absorb_group(unsafe { text.output(before) }, |a, b, c| multiply(a, b, c));
                }
                offset += GROUP * BLOCK_LEN;
            }
            if let Some(before) = sealed {
                // SAFETY: as above.
                hash.absorb_group(unsafe { text.output(before) }, |a, b, c| multiply(a, b, c));
            }
            while offset + BLOCK_LEN <= text.len {
                // SAFETY: the text has a block at this offset.
                hash.absorb(unsafe { cipher.single::<OPEN>(text, offset) });
                offset += BLOCK_LEN;
            }
            if offset < text.len {
                hash.absorb(cipher.part::<OPEN>(text, offset));
            }
            let lengths = block::lengths(header.len(), text.len);
            block::xor(block::reverse(hash.finish(lengths)), tag_mask)
        }
    };
}
pub(crate) use kernel;
