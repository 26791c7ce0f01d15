//! Explains what limited a transfer.

mod blocked;
mod cause;
mod codes;
mod credit;
mod delivery;
mod direction;
mod ending;
mod explainer;
mod explanation;
mod facts;
mod finding;
mod ledger;
mod paragraph;
mod rank;
mod rates;
mod receiver;
mod sender;
mod spread;
mod verdict;
mod words;

pub use self::cause::Cause;
pub use self::delivery::{Streams, Unknown};
pub use self::direction::Direction;
pub use self::ending::Ending;
pub use self::explainer::Explainer;
pub use self::explanation::Explanation;
pub use self::facts::Counts;
pub use self::finding::Finding;
pub use self::ledger::{Mark, Stretch};
pub use self::paragraph::sentences;
