//! Stands for regular expressions in builds without them.

use crate::error::Failure;

#[derive(Debug)]
pub(super) enum Expression {}

impl Expression {
    pub(super) fn read(_: &str, _: &str, _: u32) -> Result<Self, Failure> {
        let text = crate::features::missing("--rand-regex-url", "rand-regex");
        Err(Failure::new(text))
    }

    pub(super) fn draw(&self, _: u64) -> String {
        match *self {}
    }
}
