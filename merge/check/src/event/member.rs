//! The members of an event, one by one: whether viewers take their values.

use super::Event;
use crate::finding::Findings;
use crate::loose;
use crate::rule::Rule;
use trace_event::json::{Members, Span, ends_in_backslash};
use trace_event::member::{Fault, breaks_down, fault, is_infinite, is_name};

/// That of an event without one, whose members Perfetto reads all the same.
pub(super) const NO_PHASE: u8 = 0;

impl Event<'_, '_> {
    /// Tells of members whose values viewers do not take; false if there is a time among them, which is told with the other times.
    pub(super) fn look_at_members(&self, phase: u8, findings: &mut Findings) -> bool {
        if phase != NO_PHASE && !self.may_be_at_fault(phase) {
            return true;
        }
        let (text, name) = (
            &self.text[self.range.clone()],
            self.fields.name.of(self.text),
        );
        if self.fields.odd_escapes && ends_in_backslash(text) {
            findings.add(Rule::LastBackslash, self.place);
        }
        let mut has_good_times = true;
        let members = members(text);
        let pids = members.iter().filter(|(key, _)| key.of(text) == b"pid");
        // Nobody looks for the process of a sample, or of what has no phase or no time.
        let is_placed =
            !matches!(phase, b'P' | NO_PHASE) && (self.fields.ts.is_some() || phase == b'M');
        if is_placed && breaks_down(pids.map(|(_, value)| value.of(text))) {
            findings.add(Rule::PidTwice, self.place);
        }
        for (key, value) in members {
            let fault = fault(phase, name, key.of(text), value.of(text));
            match fault {
                Some(Fault::Number) => findings.add(Rule::BadNumber, self.place),
                Some(Fault::Time) => has_good_times = false,
                Some(Fault::Id2) => findings.add(Rule::BadId2, self.place),
                Some(Fault::Half) => findings.add(Rule::HalfCharacter, self.place),
                // Those are told by their time, or by what is read of the args.
                Some(Fault::NegativeTime | Fault::Endless | Fault::Name) | None => {}
            }
            let is_naming = phase == b'M' && key.of(text) == b"args" && is_name(name);
            let is_naming = is_naming && !matches!(fault, Some(Fault::Number | Fault::Half));
            if is_naming && let Some(rule) = fault_of_naming(value.of(text)) {
                findings.add(rule, self.place);
            }
        }
        has_good_times
    }

    /// Whether any of its members may be one that viewers do not take: of most events none is.
    fn may_be_at_fault(&self, phase: u8) -> bool {
        let fields = self.fields;
        let known = [
            fields.ph,
            fields.ts,
            fields.dur,
            fields.pid,
            fields.tid,
            fields.name,
            fields.cat,
            fields.args,
        ];
        let has_id = fields.id.is_some() | fields.id2.is_some() | fields.bind_id.is_some();
        let is_number = |span: Span| is_infinite(span.of(self.text));
        fields.odd | fields.odd_escapes | fields.repeated | has_id
            || phase == b'M'
            || known.into_iter().any(is_number)
    }
}

/// What is wrong with args that name a process or thread. Each `name` in them must be able to be one: of two Perfetto minds either.
fn fault_of_naming(args: &[u8]) -> Option<Rule> {
    let Ok(mut members) = loose::Members::open(args) else {
        return Some(Rule::BadName);
    };
    let (mut has_name, mut is_good) = (false, true);
    loop {
        match members.member() {
            Ok(Some((key, value))) if key.of(args) == b"name" => {
                has_name = true;
                is_good &= matches!(value.of(args), [b'"', first, ..] if *first != b'"');
            }
            Ok(Some(_)) => {}
            Ok(None) => return (!has_name || !is_good).then_some(Rule::BadName),
            Err(_) => return Some(Rule::MetadataEndless),
        }
    }
}

/// The members of an object, which may be JSON only to Perfetto.
fn members(text: &[u8]) -> Vec<(Span, Span)> {
    let mut strict = Members::of(text);
    let members = strict.by_ref().collect();
    if strict.is_at_end() {
        return members;
    }
    let Ok(mut members) = loose::Members::open(text) else {
        return members;
    };
    std::iter::from_fn(|| members.member().ok().flatten()).collect()
}
