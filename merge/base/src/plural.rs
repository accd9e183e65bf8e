//! Counts with a noun, for messages.

/// Returns a count followed by a noun in the right number: `1 event`, `2 processes`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_counts() {
        let texts = [0, 1, 2].map(|count| plural(count, "event"));
        assert_eq!(texts, ["0 events", "1 event", "2 events"]);
        assert_eq!(plural(2, "process"), "2 processes");
    }
}
