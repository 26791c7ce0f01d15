//! The table of the controllers, and their names.

use std::fmt;
use std::str::FromStr;

/// Calls the macro `$then` with the arguments in brackets and the table of the crate's controllers.
///
/// This table is the only list of them. [`Algorithm`], its names, the messages and the help texts come
/// from it, and so do the variants and constructors of
/// [`CongestionController`](super::CongestionController). Each entry has a variant, the type, which
/// implements [`Builtin`](super::builtin::Builtin), the name, other accepted names, and the
/// documentation. Messages and help texts have the order of the entries.
macro_rules! controllers {
    ($then:ident[$($arguments:tt)*]) => {
        $then! {
            [$($arguments)*]
            NewReno(NewReno) = "newreno", [],
                "NewReno, RFC 9002 appendix B.";
            #[default]
            Cubic(Cubic) = "cubic", [],
                "CUBIC, RFC 9438.";
            // Boxed, because its model is large.
            Bbr(Box<Bbr>) = "bbr", ["bbr3", "bbrv3"],
                "BBRv3, draft-ietf-ccwg-bbr.";
            Prague(Prague) = "prague", [],
                "Prague, draft-briscoe-iccrg-prague-congestion-control, for paths with L4S queues.";
        }
    };
}
pub(super) use controllers;

macro_rules! algorithm {
    ([] $(
        $(#[$default:ident])?
        $variant:ident($controller:ty) = $name:literal, [$($other_name:literal),*], $about:literal;
    )*) => {
        /// The algorithm of a controller.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum Algorithm {
            $(
                #[doc = $about]
                $(#[$default])?
                $variant,
            )*
        }

        impl Algorithm {
            /// All algorithms, in the order in which messages and help texts list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl FromStr for Algorithm {
            type Err = UnknownAlgorithm;

            fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
                match name {
                    $($name $(| $other_name)* => Ok(Self::$variant),)*
                    _ => Err(UnknownAlgorithm(name.to_owned())),
                }
            }
        }
    };
}

controllers!(algorithm[]);

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown name of a congestion controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown controller '{}', known are ", self.0)?;
        for (index, algorithm) in Algorithm::ALL.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{algorithm}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownAlgorithm {}
