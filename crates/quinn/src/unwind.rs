//! Handles after a panic.
//!
//! A panic inside a connection ends that connection, and the next holder of the lock finds whole state
//! (docs/ARCHITECTURE.md, "A panic inside a connection ends that connection"). Programs may therefore use all
//! handles after they have caught one, as with quinn.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::*;

macro_rules! unwind_safe {
    ($($name:ty)*) => {
        $(
            impl UnwindSafe for $name {}
            impl RefUnwindSafe for $name {}
        )*
    };
}

unwind_safe! {
    Endpoint Incoming IncomingFuture Connecting Connection SendStream RecvStream
    Accept<'_> OpenUni<'_> OpenBi<'_> AcceptUni<'_> AcceptBi<'_> ReadDatagram<'_> SendDatagram<'_>
}
