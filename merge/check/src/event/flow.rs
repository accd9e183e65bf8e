//! What an event does with arrows.

use super::Event;
use crate::arrow::{Arrow, Step};
use crate::finding::Findings;
use crate::id::{flow_id, flow_key, value_of};
use crate::item::Act;
use crate::rule::Rule;

impl Event<'_, '_> {
    /// An arrow's start, step or end; nothing if viewers do not take its id.
    pub(super) fn flow(&self, phase: u8) -> Option<Act> {
        let fields = self.fields;
        let key = flow_key(self.text, fields.id, fields.cat, fields.name)?;
        let step = match phase {
            b's' => Step::Start,
            b'f' if self.member("bp") != b"\"e\"" => Step::EndNext,
            _ => Step::Reach,
        };
        Some(Act::Arrow(step, Arrow::Named(key)))
    }

    /// The arrow that a span brings with it.
    pub(super) fn bound(&self, phase: u8, findings: &mut Findings) -> Option<Act> {
        let brings = match phase {
            b'X' | b'B' => true,
            b'b' | b'n' => self.async_key(phase).is_some(),
            _ => false,
        };
        let value = value_of(self.fields.bind_id.of(self.text));
        if !brings || matches!(value, b"" | b"null") {
            return None;
        }
        let Some(id) = flow_id(value) else {
            findings.add(Rule::BindId, self.place);
            return None;
        };
        let [is_in, is_out] = ["flow_in", "flow_out"].map(|flag| self.member(flag) == b"true");
        let step = match (is_in, is_out) {
            (false, false) => {
                findings.add(Rule::FlowWithoutDirection, self.place);
                return None;
            }
            (false, true) => Step::Start,
            (true, _) => Step::Reach,
        };
        Some(Act::Arrow(step, Arrow::Bound(id)))
    }
}
