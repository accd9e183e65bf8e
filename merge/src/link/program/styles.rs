//! Names and categories of flows, as numbers. A viewer distinguishes flows by both and by their id.

use crate::event::json::Fields;
use crate::event::{Event, What};
use crate::link::records::FlowPhases;
use serde::Serialize;
use std::sync::{Mutex, PoisonError};

/// Maximum number of styles. Flows with further styles are neither reported nor joined.
const MAX_STYLES: usize = 256;
/// Maximum length of the members of a style in bytes.
const MAX_MEMBER_BYTES: usize = 512;

/// Number of the name and category of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Style(pub(crate) u32);

/// Members `"name":…,"cat":…` of all styles of a trace, by number.
#[derive(Default)]
pub(crate) struct Styles(Mutex<Vec<Vec<u8>>>);

/// Styles that one worker has found, by the text after the flow's id, which is nearly always the
/// same for a style. So each style is looked up once.
#[derive(Default)]
pub(crate) struct StyleCache(Vec<(Vec<u8>, Option<Style>)>);

impl Styles {
    fn number(&self, members: &[u8]) -> Option<Style> {
        let mut styles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = styles.iter().position(|style| style == members);
        if number.is_none() && (styles.len() >= MAX_STYLES || members.len() > MAX_MEMBER_BYTES) {
            return None;
        }
        let number = number.unwrap_or_else(|| {
            styles.push(members.to_owned());
            styles.len() - 1
        });
        u32::try_from(number).ok().map(Style)
    }

    /// Returns the members of each style.
    pub(crate) fn into_texts(self) -> Vec<Vec<u8>> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StyleCache {
    /// Returns the style of a flow event.
    #[inline]
    pub(crate) fn get(&mut self, event: &Event<'_>, styles: &Styles) -> Option<Style> {
        let style = || styles.number(&style_members(event)?);
        let Fields {
            id, id2, name, cat, ..
        } = event.fields;
        let after_id = id.end.max(id2.end);
        if [name, cat]
            .iter()
            .any(|member| member.is_some() && member.start < after_id)
        {
            return style();
        }
        let text = &event.line[after_id..];
        if let Some((_, style)) = self.0.iter().find(|(cached, _)| cached == text) {
            return *style;
        }
        let style = style();
        if self.0.len() < MAX_STYLES && text.len() <= MAX_MEMBER_BYTES {
            self.0.push((text.to_owned(), style));
        }
        style
    }
}

/// Returns the members `"name":…,"cat":…` of a flow event, if it has both.
fn style_members(event: &Event<'_>) -> Option<Vec<u8>> {
    let [mut name, mut category, _] = event.members_in_order(What::Category);
    if name.is_empty() || category.is_empty() {
        // The general parser finds the members wherever they are.
        name = event.fields.name.slice(event.line);
        category = event.fields.cat.slice(event.line);
    }
    let is_whole = !name.is_empty() && !category.is_empty();
    is_whole.then(|| [br#""name":"#, name, br#","cat":"#, category].concat())
}

/// Returns name and category as texts.
pub(crate) fn name_and_category(members: &[u8]) -> (String, String) {
    let object = [b"{", members, b"}"].concat();
    let value = serde_json::from_slice::<serde_json::Value>(&object).unwrap_or_default();
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("cat"))
}

/// Flows with the same name and category for which viewers draw no arrow, because some of their
/// events are missing or have another name, category or id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LooseFlows {
    /// Name of the flows.
    pub name: String,
    /// Category of the flows.
    pub category: String,
    /// Number of flows that have a start, but no step and no end.
    pub without_end: u64,
    /// Number of flows that have steps or an end, but no start.
    pub without_start: u64,
}

/// Number of flows of each style that lead nowhere: without end, without start.
#[derive(Debug, Default)]
pub(crate) struct LooseCounts(Vec<[u64; 2]>);

impl LooseCounts {
    /// Counts a flow if it has no start, or only a start.
    #[inline]
    pub(crate) fn add(&mut self, style: Style, has_start: bool, has_rest: bool) {
        if has_start == has_rest {
            return;
        }
        let style = style.0 as usize;
        if self.0.len() <= style {
            self.0.resize(style + 1, [0; 2]);
        }
        self.0[style][usize::from(has_rest)] += 1;
    }

    /// Counts those of `flows` that have no start, or only a start. Each flow is of a single
    /// process.
    pub(crate) fn add_local(&mut self, flows: &[FlowPhases]) {
        for flow in flows {
            self.add(flow.style, flow.has_start, flow.has_other);
        }
    }

    /// Returns the counts of each style that has any, sorted by count in descending order.
    pub(crate) fn report(self, styles: &[Vec<u8>]) -> Vec<LooseFlows> {
        let styles = self.0.into_iter().zip(styles);
        let loose = styles.filter(|(counts, _)| *counts != [0; 2]);
        let loose = loose.map(|([without_end, without_start], members)| {
            let (name, category) = name_and_category(members);
            LooseFlows {
                name,
                category,
                without_end,
                without_start,
            }
        });
        let mut loose: Vec<_> = loose.collect();
        let count = |flows: &LooseFlows| flows.without_end + flows.without_start;
        loose.sort_by(|one, other| {
            let by_count = count(other).cmp(&count(one));
            by_count.then_with(|| (&one.name, &one.category).cmp(&(&other.name, &other.category)))
        });
        loose
    }
}
