//! Templates that are refused.

/// The reason why a URI template is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTemplate {
    /// The template is no absolute URI.
    #[error(
        "'{0}' is no absolute URI; expected a form such as https://proxy.example/path/{{variable}}/"
    )]
    NotAbsolute(String),
    /// The scheme is not https.
    #[error("the scheme is '{0}', allowed is https")]
    Scheme(String),
    /// The port of the proxy is no number from 1 to 65535.
    #[error("the port of the proxy is '{0}', allowed is 1 to 65535")]
    Port(String),
    /// There is no path, or a variable stands before it.
    #[error(
        "the template has no path that begins with '/'; Template::of_proxy makes the usual one"
    )]
    NoPath,
    /// A variable is missing.
    #[error("the template lacks the variable {0}")]
    Missing(&'static str),
    /// A variable occurs twice.
    #[error("the template has the variable {0} twice")]
    Twice(String),
    /// The template has an operator other than simple and form expansion, or a modifier.
    #[error(
        "the expression '{{{0}}}' is neither simple nor form expansion (RFC 6570 §3.2.2, §3.2.8, §3.2.9)"
    )]
    Expression(String),
    /// A character outside of `!` to `~`, a quote, or an unmatched brace.
    #[error("the template has the character {0:?}, which no URI has")]
    Character(char),
    /// The template of a proxy has a variable other than those of its protocol, whose value it would not know.
    #[error("the variable {0} has no meaning for a proxy")]
    Unknown(String),
    /// Values cannot be told from the text after them.
    #[error("an expression is followed by {0:?}, which may be part of a value")]
    Ambiguous(String),
    /// The template exceeds 4096 bytes.
    #[error("the template has {0} bytes, allowed is 4096")]
    TooLong(usize),
}
