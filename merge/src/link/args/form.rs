//! The forms of a request's id: engines put a prefix before the id that a client or proxy uses, and
//! suffixes after it.
//!
//! vLLM answers a completion `x` as `cmpl-x` and calls its first prompt `cmpl-x-0`. The engine gets
//! that as `cmpl-x-0-` followed by eight random hexadecimal digits. The second of several samples
//! of a request is `1_` followed by the request's id.

/// Prefixes that engines add, by the kind of the answer.
const PREFIXES: [&[u8]; 4] = [b"cmpl-", b"chatcmpl-", b"embd-", b"resp_"];
const TAIL_DIGITS: usize = 8;

/// Maximum number of shorter forms of an id: three starts combined with three ends, without the id
/// itself.
pub(crate) const MAX_FORMS: usize = 8;
/// Minimum length of an id that a client generates from random digits.
const MIN_RANDOM: usize = 16;

/// Calls `found` with each form of an id that is shorter than the id itself.
pub(crate) fn forms(id: &[u8], mut found: impl FnMut(&[u8])) {
    let (starts, ends) = (start_offsets(id), end_offsets(id));
    // A form that only consists of the engine's additions does not identify a request.
    let least = starts[2];
    for (nth, &start) in starts.iter().enumerate() {
        let again = nth > 0 && start == starts[nth - 1];
        for (mth, &end) in ends.iter().enumerate() {
            let again = again || mth > 0 && end == ends[mth - 1];
            if !again && end > least && end - start < id.len() {
                found(&id[start..end]);
            }
        }
    }
}

/// Returns the part that an id very likely shares with the other ids of its request.
///
/// Unlike the shortest form, it includes everything that the client may have chosen. Otherwise
/// `req-1`, `req-2` and `req-1a2b3c4d` would all be `req`.
pub(crate) fn family(id: &[u8]) -> &[u8] {
    let [_, sample, start] = start_offsets(id);
    let [all, tail, prompt] = end_offsets(id);
    // Most requests have one prompt, the first.
    let is_first = id.get(prompt..tail) == Some(b"-0");
    let end = if is_first { prompt } else { tail };
    // Only the engine adds a prefix, a prompt and random digits together.
    let is_engines = start > sample && is_first && tail < all;
    let is_random = |part: &[u8]| {
        part.iter()
            .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
    };
    let is_safe =
        end >= start + MIN_RANDOM && is_random(&id[start..end]) || is_engines && end > start;
    &id[start..if is_safe { end } else { all }]
}

/// Returns true if `is_one` accepts the id itself or a shorter form of it.
pub(crate) fn any_form(id: &str, is_one: impl Fn(&str) -> bool) -> bool {
    let mut any = is_one(id);
    forms(id.as_bytes(), |form| {
        any = any || std::str::from_utf8(form).is_ok_and(&is_one);
    });
    any
}

/// Returns three offsets where the id can begin: the whole id, without the number of a sample, and
/// without the prefix as well.
fn start_offsets(id: &[u8]) -> [usize; 3] {
    let digits = digit_count(id.iter());
    let sample = match id.get(digits) {
        Some(b'_') if digits > 0 => digits + 1,
        _ => 0,
    };
    let rest = &id[sample..];
    let prefix = PREFIXES.iter().find(|prefix| rest.starts_with(prefix));
    [0, sample, sample + prefix.map_or(0, |prefix| prefix.len())]
}

/// Returns three offsets where the id can end: the whole id, without the random tail, and without
/// the number of a prompt as well.
fn end_offsets(id: &[u8]) -> [usize; 3] {
    let is_tail = |tail: &&[u8]| {
        tail.len() == TAIL_DIGITS
            && tail
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let tail = last_segment(id).filter(is_tail);
    let tail = id.len() - tail.map_or(0, |tail| tail.len() + 1);
    let number = digit_count(id[..tail].iter().rev());
    let prompt = last_segment(&id[..tail]).filter(|segment| number > 0 && segment.len() == number);
    let prompt = tail - prompt.map_or(0, |segment| segment.len() + 1);
    [id.len(), tail, prompt]
}

/// Returns the text after the last dash.
fn last_segment(id: &[u8]) -> Option<&[u8]> {
    memchr::memrchr(b'-', id).map(|dash| &id[dash + 1..])
}

fn digit_count<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    bytes.take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_request_are_a_family() {
        let random = "d2b3a4c5d6e7f8a9";
        for id in ["", "cmpl-", "chatcmpl-"] {
            for end in ["", "-0", "-13799a9b", "-0-13799a9b"] {
                let id = format!("{id}{random}{end}");
                assert_eq!(family(id.as_bytes()), random.as_bytes(), "{id}");
            }
        }
        for case in include_str!("../../../tests/fixtures/id-families.txt").lines() {
            let (id, expected) = case.split_once(':').unwrap();
            assert_eq!(family(id.as_bytes()), expected.as_bytes(), "{id}");
        }
    }

    #[test]
    fn forms_lack_what_engines_add() {
        for case in include_str!("../../../tests/fixtures/id-forms.txt").lines() {
            let (id, forms) = case.split_once(':').unwrap();
            let mut all = Vec::new();
            super::forms(id.as_bytes(), |form| {
                all.push(String::from_utf8_lossy(form).into_owned());
            });
            all.sort();
            assert_eq!(all.join(" "), forms, "{id}");
            let has = |form: &str| any_form(id, |one| one == form);
            assert!(all.iter().all(|form| has(form)) && has(id), "{id}");
            assert!(!has("abcd") && !has("cmpl-xyz"), "{id}");
        }
    }
}
