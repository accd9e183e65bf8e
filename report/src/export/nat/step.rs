//! The begins and ends of calls: the rows of NeMo Agent Toolkit's tables.

use super::call::Call;
use super::example::Example;
use crate::export::call_span::CallKind;

/// What a call without a function, or without a call around it, lies in.
pub(super) const ROOT: &str = "root";

/// The begin or the end of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    pub(super) call: &'a Call,
    pub(super) at_ns: i64,
    pub(super) is_end: bool,
    /// The id of the call around it.
    pub(super) parent: &'a str,
    pub(super) function: Function<'a>,
}

/// The function that a call lies in, and the one around that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) id: &'a str,
    pub(super) parent_name: &'a str,
    pub(super) parent_id: &'a str,
}

impl<'a> Function<'a> {
    fn of(example: &'a Example, functions: &[Option<usize>], number: usize) -> Function<'a> {
        let function = functions[number];
        let (name, id) = of(example, function);
        let around = function.and_then(|function| example.calls[function].parent);
        let around = around.and_then(|parent| functions[parent]);
        let (parent_name, parent_id) = of(example, around);
        Function {
            name,
            id,
            parent_name,
            parent_id,
        }
    }
}

fn of(example: &Example, number: Option<usize>) -> (&str, &str) {
    let call = number.map(|number| &example.calls[number]);
    call.map_or((ROOT, ROOT), |call| (&call.name, &call.uuid))
}

impl<'a> Step<'a> {
    /// What it is called, such as `LLM_START`.
    pub(super) fn event_type(&self) -> String {
        let what = if self.is_end { "END" } else { "START" };
        format!("{}_{what}", self.call.kind.word())
    }

    /// Whether a call of a model begins with it.
    pub(super) fn is_llm_start(&self) -> bool {
        self.call.kind == CallKind::Llm && !self.is_end
    }

    /// The tokens of the prompt and of the answer, which an end has, and a begin has not.
    pub(super) fn tokens(&self) -> (u64, u64) {
        let of = |tokens: Option<u64>| tokens.filter(|_| self.is_end).unwrap_or(0);
        (of(self.call.prompt_tokens), of(self.call.completion_tokens))
    }
}

/// The steps of a request in the order of time. At one instant ends come first, the inner ones before those around them, and then begins, the outer ones first.
pub(super) fn steps(example: &Example) -> Vec<Step<'_>> {
    let depths = example.depths();
    let functions = example.functions(&depths);
    let mut ordered = Vec::new();
    for (number, call) in example.calls.iter().enumerate() {
        let step = |at_ns, is_end| Step {
            call,
            at_ns,
            is_end,
            parent: of(example, call.parent).1,
            function: Function::of(example, &functions, number),
        };
        let depth = i64::try_from(depths[number]).unwrap_or(i64::MAX);
        ordered.push(((call.start_ns, 1, depth), step(call.start_ns, false)));
        if let Some((from_ns, to_ns)) = call.time() {
            let rank = if from_ns == to_ns { 2 } else { 0 };
            ordered.push(((to_ns, rank, -depth), step(to_ns, true)));
        }
    }
    ordered.sort_by_key(|(order, _)| *order);
    ordered.into_iter().map(|(_, step)| step).collect()
}
