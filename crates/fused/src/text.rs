//! The text of a packet as kernels see it.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::schedule::Block;

/// The bytes that a kernel reads and those that it writes: either the same bytes, or two buffers of equal
/// length.
pub(crate) struct Text<'a> {
    /// Valid for reads of `len` bytes.
    pub(crate) from: *const u8,
    /// Valid for writes of `len` bytes. Either equal to `from`, or the two areas do not overlap.
    pub(crate) to: *mut u8,
    pub(crate) len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> Text<'a> {
    #[inline]
    pub(crate) fn in_place(text: &'a mut [u8]) -> Self {
        let to = text.as_mut_ptr();
        Self {
            from: to,
            to,
            len: text.len(),
            lifetime: PhantomData,
        }
    }

    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub(crate) fn between(from: &'a [u8], to: &'a mut [u8]) -> Self {
        assert_eq!(
            from.len(),
            to.len(),
            "input and output have the same length"
        );
        Self {
            from: from.as_ptr(),
            to: to.as_mut_ptr(),
            len: to.len(),
            lifetime: PhantomData,
        }
    }

    /// Returns `N` blocks of the input at `offset`, in bytes.
    ///
    /// # Safety
    /// The text has `N` blocks from `offset` on. Nothing is written while the result is in use.
    #[inline]
    pub(crate) unsafe fn input<const N: usize>(&self, offset: usize) -> &[Block; N] {
        // SAFETY: `from` is valid for reads of these bytes, and arrays of bytes need no alignment.
        unsafe { &*self.from.add(offset).cast() }
    }

    /// Returns `N` blocks of the output at `offset`, in bytes.
    ///
    /// # Safety
    /// The text has `N` blocks from `offset` on, and all of them were written. Nothing is written while the
    /// result is in use.
    #[inline]
    pub(crate) unsafe fn output<const N: usize>(&self, offset: usize) -> &[Block; N] {
        // SAFETY: `to` points to these bytes, and arrays of bytes need no alignment.
        unsafe { &*self.to.add(offset).cast() }
    }

    /// Returns the block of the input at `offset`, in bytes.
    ///
    /// # Safety
    /// The text has a block from `offset` on. Nothing is written while the result is in use.
    #[inline]
    pub(crate) unsafe fn block(&self, offset: usize) -> &Block {
        // SAFETY: `from` is valid for reads of these bytes, and arrays of bytes need no alignment.
        unsafe { &*self.from.add(offset).cast() }
    }

    /// Writes a block of the output at `offset`, in bytes.
    ///
    /// # Safety
    /// The text has a block from `offset` on. Nothing that was returned before is in use.
    #[inline]
    pub(crate) unsafe fn write(&self, offset: usize, block: Block) {
        // SAFETY: `to` is valid for writes of these bytes, and arrays of bytes need no alignment.
        unsafe { self.to.add(offset).cast::<Block>().write(block) }
    }
}
