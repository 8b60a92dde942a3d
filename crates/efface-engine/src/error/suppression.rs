//! Why a row that comes in a new file is refused.

/// By what a row is known that must not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuppressionKind {
    /// The id.
    Id,
    /// An id that looks like it.
    AlikeId,
    /// The person.
    Subject,
    /// The content.
    Content,
}

/// What the list of forgotten rows has against a row.
pub(super) fn who_comes_back(line: u64, id: &str, by: SuppressionKind) -> String {
    let place = if line == 0 {
        String::new()
    } else {
        format!("line {line}: ")
    };
    match by {
        SuppressionKind::Id => format!("{place}row {id} was forgotten"),
        SuppressionKind::AlikeId => format!("{place}a row whose id looks like {id} was forgotten"),
        SuppressionKind::Subject => {
            format!("{place}the person whom row {id} belongs to was forgotten")
        }
        SuppressionKind::Content => {
            format!("{place}a row that says the same as row {id} was forgotten")
        }
    }
}
