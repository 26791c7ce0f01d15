//! The errors of calls about candidates.

/// The reason why a candidate cannot be offered, or no round can start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CandidateError {
    /// One end has not set [`TransportConfig::max_candidates`](crate::TransportConfig::max_candidates), or has one path.
    NotNegotiated,
    /// As many addresses are offered as the peer accepts.
    TooMany {
        /// The number that the peer accepts.
        limit: usize,
    },
    /// Only the client starts rounds.
    NotClient,
    /// The server has announced no address that may be probed.
    NoCandidates,
}

impl std::fmt::Display for CandidateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotNegotiated => f.write_str(
                "the ends have not agreed on candidates: both need max_candidates and several paths",
            ),
            Self::TooMany { limit } => write!(f, "the peer accepts {limit} candidates at a time"),
            Self::NotClient => f.write_str("only clients start rounds"),
            Self::NoCandidates => f.write_str("the server has announced no address to probe"),
        }
    }
}

impl std::error::Error for CandidateError {}
