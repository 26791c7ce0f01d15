//! Systems without devices: none can be opened.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;

use crate::batch::{Offloads, ReadBuffer, WriteBuffer, Written};
use crate::error::OpenError;

/// A device, of which there is none.
#[derive(Debug)]
pub(crate) struct Device(Infallible);

impl Device {
    pub(crate) const fn open(_: &str, _: bool) -> Result<Self, OpenError> {
        Err(OpenError::Unsupported)
    }

    pub(crate) const fn name(&self) -> &str {
        match self.0 {}
    }

    pub(crate) const fn offloads(&self) -> Offloads {
        match self.0 {}
    }

    pub(crate) const fn read_many(
        &self,
        _: &mut ReadBuffer,
        _: &mut Vec<Bytes>,
        _: usize,
    ) -> io::Result<usize> {
        match self.0 {}
    }

    pub(crate) const fn write_many(
        &self,
        _: &mut WriteBuffer,
        _: &mut Vec<Bytes>,
    ) -> io::Result<Written> {
        match self.0 {}
    }
}

pub(crate) const fn is_gone(_: &io::Error) -> bool {
    false
}
