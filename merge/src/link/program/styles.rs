//! Names and categories of flows, as numbers: a viewer distinguishes flows by both, and by their id.

use crate::event::{Event, What};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Maximum number of styles. Flows of further ones are neither reported nor joined.
const MOST: usize = 256;
/// Maximum length of the members of a style.
const MOST_BYTES: usize = 512;

/// The name and the category of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Style(pub(crate) u32);

/// All styles of a trace.
#[derive(Default)]
pub(crate) struct Styles(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<Vec<u8>, u32>,
    texts: Vec<Vec<u8>>,
}

/// The styles that one worker has met: it asks for each of them once.
#[derive(Default)]
pub(crate) struct StyleCache {
    by_members: Vec<(Vec<u8>, Option<Style>)>,
    /// The same by all that comes after the flow's id in a canonical line.
    by_rest: Vec<(Vec<u8>, Option<Style>)>,
}

impl Styles {
    fn number(&self, members: &[u8]) -> Option<Style> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(members) {
            return Some(Style(*number));
        }
        let number = u32::try_from(known.texts.len()).ok()?;
        if known.texts.len() >= MOST || members.len() > MOST_BYTES {
            return None;
        }
        known.numbers.insert(members.to_owned(), number);
        known.texts.push(members.to_owned());
        Some(Style(number))
    }

    /// Returns the members `"name":…,"cat":…` of each style, by its number.
    pub(crate) fn into_texts(self) -> Vec<Vec<u8>> {
        let known = self.0.into_inner();
        known.unwrap_or_else(PoisonError::into_inner).texts
    }
}

impl StyleCache {
    /// Returns the style of these members.
    #[inline]
    pub(crate) fn get(&mut self, members: &[u8], styles: &Styles) -> Option<Style> {
        find_or_keep(&mut self.by_members, members, || styles.number(members))
    }

    /// Returns the style of a canonical line, given what comes after the flow's id; `None` if it needs a closer look.
    #[inline]
    pub(crate) fn get_after_id(&mut self, rest: &[u8], styles: &Styles) -> Option<Style> {
        let by_members = &mut self.by_members;
        find_or_keep(&mut self.by_rest, rest, || {
            let members = members_after_id(rest)?;
            find_or_keep(by_members, members, || styles.number(members))
        })
    }
}

#[inline]
fn find_or_keep(
    known: &mut Vec<(Vec<u8>, Option<Style>)>,
    text: &[u8],
    style: impl FnOnce() -> Option<Style>,
) -> Option<Style> {
    if let Some((_, style)) = known.iter().find(|(known, _)| known == text) {
        return *style;
    }
    let style = style();
    if known.len() < MOST {
        known.push((text.to_owned(), style));
    }
    style
}

/// Returns the members `"name":…,"cat":…` of a flow event, if it has both.
pub(crate) fn members_of(event: &Event<'_>) -> Option<Vec<u8>> {
    let [mut name, mut category, _] = event.members_in_order(What::Category);
    if name.is_empty() || category.is_empty() {
        // The general reader finds the members wherever they are.
        name = event.fields.name.of(event.line);
        category = event.fields.cat.of(event.line);
    }
    let is_whole = !name.is_empty() && !category.is_empty();
    is_whole.then(|| [br#""name":"#, name, br#","cat":"#, category].concat())
}

/// Returns the same of a canonical line, given what comes after the flow's id.
fn members_after_id(after_id: &[u8]) -> Option<&[u8]> {
    let after = after_id
        .strip_prefix(br#","bp":"e""#)
        .unwrap_or(after_id)
        .strip_prefix(b",")?;
    let members = after.strip_suffix(b"}")?;
    let is_plain = members.starts_with(br#""name":""#)
        && memchr::memmem::find(members, br#"","cat":""#).is_some()
        && memchr::memchr2(b'\\', b'{', members).is_none()
        && memchr::memchr_iter(b'"', members).count() == 8;
    is_plain.then_some(members)
}

/// Returns name and category as texts.
pub(crate) fn name_and_category(members: &[u8]) -> (String, String) {
    let object = [b"{", members, b"}"].concat();
    let value = serde_json::from_slice::<serde_json::Value>(&object).unwrap_or_default();
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("cat"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::line::parse;

    #[test]
    fn both_ways_of_reading_give_the_same_members() {
        let after = r#","bp":"e","name":"request","cat":"flow"}"#;
        let line = format!(
            r#"{{"ph":"f","pid":4711,"tid":12,"ts":1.000,"id2":{{"global":"0x1f"}}{after}"#
        );
        let event = parse(line.as_bytes()).unwrap();
        let expected = br#""name":"request","cat":"flow""#;
        assert_eq!(members_of(&event).as_deref(), Some(&expected[..]));
        assert_eq!(members_after_id(after.as_bytes()), Some(&expected[..]));
        assert_eq!(
            name_and_category(expected),
            ("request".to_owned(), "flow".to_owned())
        );
        for odd in [
            r#","name":"a\"b","cat":"c"}"#,
            r#","name":"a","cat":"c","args":{"d":1}}"#,
            r#","name":"a"}"#,
        ] {
            assert_eq!(members_after_id(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn styles_are_numbered_once_and_bounded() {
        let (styles, mut cache) = (Styles::default(), StyleCache::default());
        let text = |number: usize| format!(r#""name":"{number}","cat":"c""#).into_bytes();
        for _ in 0..2 {
            assert_eq!(cache.get(&text(0), &styles), Some(Style(0)));
            assert_eq!(cache.get(&text(1), &styles), Some(Style(1)));
        }
        assert_eq!(styles.number(&text(1)), Some(Style(1)));
        for number in 2..300 {
            assert_eq!(cache.get(&text(number), &styles).is_some(), number < MOST);
        }
        assert_eq!(styles.into_texts().len(), MOST);
    }
}
