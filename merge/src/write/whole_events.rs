//! Removes lines that are not valid events from text that is about to be written.

use crate::event::json::scan_object;
use memchr::memchr_iter;

/// Written in place of a first chunk that has lost all its events, since the next chunk begins with a comma. Viewers ignore unknown metadata.
const PLACEHOLDER: &[u8] =
    b",\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"sa_changed\",\"args\":{}}";

/// Removes lines that are not valid JSON events from `text`, in which every line follows a comma. Returns how many it removed.
///
/// Lines are copied from the input without being parsed again. If another program has changed the input since the first pass, they can be anything.
pub(crate) fn keep_whole_events(text: &mut Vec<u8>) -> u64 {
    let mut removed = 0;
    let mut kept = Vec::new();
    let (mut start, mut is_first) = (0, true);
    let ends = memchr_iter(b'\n', text).chain([text.len()]);
    for end in ends {
        let line = &text[start..end];
        start = end + 1;
        // The first comma has a line of its own.
        if std::mem::take(&mut is_first) {
            continue;
        }
        let line = line.strip_suffix(b",").unwrap_or(line);
        if is_event(line) {
            kept.extend_from_slice(b",\n");
            kept.extend_from_slice(line);
        } else {
            removed += 1;
        }
    }
    if removed > 0 {
        *text = kept;
    }
    removed
}

/// Fits the text of a turn into the list of events, in which every event except the first follows a comma. Returns how many lines it removed.
///
/// The turn with the first event is chosen before anything is copied. If another program has changed the input since, an earlier turn can have lines as well. They are removed.
pub(crate) fn fit_turn(turn: usize, first_turn: Option<usize>, text: &mut Vec<u8>) -> u64 {
    if first_turn == Some(turn) {
        if text.is_empty() {
            text.extend_from_slice(PLACEHOLDER);
        }
        text.remove(0);
    }
    if first_turn.is_some_and(|first| first <= turn) {
        return 0;
    }
    let removed = memchr_iter(b'\n', text).count() as u64;
    text.clear();
    removed
}

fn is_event(line: &[u8]) -> bool {
    let fields = scan_object(line).filter(|fields| !fields.odd_numbers && fields.ph.is_some());
    fields.is_some() && simdutf8::basic::from_utf8(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The input of a turn can gain its first events between the two passes.
    #[test]
    fn turns_before_the_first_event_stay_empty() {
        let event = br#"{"ph":"i","ts":1,"name":"a"}"#.as_slice();
        let lines = |n: usize| [b",\n", event].concat().repeat(n);
        let write = |first_turn: Option<usize>, turns: [usize; 3]| {
            let (mut list, mut removed) = (b"[".to_vec(), 0);
            for (turn, n) in turns.into_iter().enumerate() {
                let mut text = lines(n);
                removed += fit_turn(turn, first_turn, &mut text);
                list.extend_from_slice(&text);
            }
            list.push(b']');
            let list = serde_json::from_slice::<Vec<serde_json::Value>>(&list).ok();
            (list.map(|events| events.len()), removed)
        };
        assert_eq!(write(Some(1), [0, 2, 1]), (Some(3), 0));
        assert_eq!(write(Some(1), [2, 1, 1]), (Some(2), 2));
        assert_eq!(write(None, [0, 1, 1]), (Some(0), 2));
        assert_eq!(write(None, [0, 0, 0]), (Some(0), 0));
        // The first turn has lost its events, and gets the placeholder.
        assert_eq!(write(Some(0), [0, 1, 0]), (Some(2), 0));
    }
}
