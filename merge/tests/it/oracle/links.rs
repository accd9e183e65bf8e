//! Computes the flow events that link the requests of a trace, the naive way: all events in memory,
//! ids as texts.

use crate::trace::ns;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A flow event: time in ns, phase, pid and tid.
pub(crate) type Link = (i64, String, String, String);

/// Returns the flows that link the requests of recorded events, sorted. Each flow is in the order
/// of its events.
pub(crate) fn expected<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<Vec<Link>> {
    let events: Vec<(&Value, Ids)> = events
        .filter(|event| is_slice(event))
        .map(|event| (event, ids(&event["args"])))
        .collect();
    let aliases = aliases(&events);
    let mut requests: BTreeMap<&str, BTreeSet<(i64, usize)>> = BTreeMap::new();
    for (index, (event, ids)) in events.iter().enumerate() {
        for id in ids.request_ids() {
            let request = request_key(id, &aliases);
            let at = (ns(&event["ts"]), index);
            requests.entry(request).or_default().insert(at);
        }
    }
    let chains = requests.values().filter(|chain| chain.len() > 1);
    let mut flows: Vec<_> = chains.map(|chain| flow(chain, &events)).collect();
    flows.sort();
    flows
}

/// Returns the flows of a trace, in the same form.
pub(crate) fn found<'a>(links: impl Iterator<Item = &'a Value>) -> Vec<Vec<Link>> {
    let mut flows: BTreeMap<String, Vec<Link>> = BTreeMap::new();
    for event in links {
        assert_eq!(event["name"], "request");
        let phase = event["ph"].as_str().unwrap();
        assert_eq!(phase == "f", event["bp"] == "e", "{event}");
        let link = link(event, phase);
        let flow = event["id"].to_string();
        flows.entry(flow).or_default().push(link);
    }
    // The sort is stable, because viewers also use events with the same time in the order of the
    // trace.
    let mut flows: Vec<_> = flows.into_values().collect();
    flows
        .iter_mut()
        .for_each(|flow| flow.sort_by_key(|link| link.0));
    flows.sort();
    flows
}

fn flow(chain: &BTreeSet<(i64, usize)>, events: &[(&Value, Ids)]) -> Vec<Link> {
    let (first, last) = (chain.first(), chain.last());
    let links = chain.iter().map(|at| {
        let event = events[at.1].0;
        let is_unfinished = event["ph"] == "B" && event["args"]["unfinished"] == true;
        let phase = match Some(at) {
            at if at == first => "s",
            at if at == last && !is_unfinished => "f",
            _ => "t",
        };
        link(event, phase)
    });
    links.collect()
}

fn link(event: &Value, phase: &str) -> Link {
    let (pid, tid) = (event["pid"].to_string(), event["tid"].to_string());
    (ns(&event["ts"]), phase.into(), pid, tid)
}

fn is_slice(event: &Value) -> bool {
    match event["ph"].as_str().unwrap() {
        "X" | "B" => true,
        "i" | "I" => event["s"] != "p" && event["s"] != "g",
        _ => false,
    }
}

#[derive(Default)]
struct Ids {
    engine: Vec<String>,
    client: Vec<String>,
}

impl Ids {
    fn request_ids(&self) -> &[String] {
        match self.engine.as_slice() {
            [] => &self.client,
            engine => engine,
        }
    }
}

fn ids(args: &Value) -> Ids {
    let mut ids = Ids::default();
    for (name, value) in args.as_object().into_iter().flatten() {
        let to = match name.trim_end_matches('s') {
            "request_id" | "internal_id" | "internal_request_id" => &mut ids.engine,
            "external_id" | "external_request_id" => &mut ids.client,
            _ => continue,
        };
        let values = value.as_array().cloned();
        let values = values.unwrap_or_else(|| vec![value.clone()]);
        to.extend(values.iter().filter_map(text));
    }
    ids
}

fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64()?.to_string(),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn aliases(events: &[(&Value, Ids)]) -> BTreeMap<String, String> {
    let all = events.iter().flat_map(|(_, ids)| ids.request_ids());
    let known: BTreeSet<&String> = all.collect();
    let mut aliases = BTreeMap::new();
    for id in &known {
        let forms = forms(id).into_iter().filter(|form| known.contains(form));
        let shortest = forms.min_by_key(String::len);
        aliases.extend(shortest.map(|form| ((*id).clone(), form)));
    }
    for (_, ids) in events {
        let [client] = ids.client.as_slice() else {
            continue;
        };
        let others = ids.engine.iter().filter(|id| *id != client);
        if known.contains(client) {
            aliases.extend(others.map(|id| (id.clone(), client.clone())));
        }
    }
    aliases
}

fn request_key<'a>(mut id: &'a str, aliases: &'a BTreeMap<String, String>) -> &'a str {
    while let Some(next) = aliases.get(id) {
        id = next;
    }
    id
}

/// Returns every other form of an id: with each possible ending, and each of these without the
/// engine's prefix.
fn forms(id: &str) -> BTreeSet<String> {
    let mut forms = vec![id];
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let tail = id.rsplit_once('-');
    let tail = tail.filter(|(_, tail)| tail.len() == 8 && tail.chars().all(is_hex));
    let without_tail = tail.map_or(id, |(rest, _)| rest);
    forms.push(without_tail);
    let prompt = without_tail.rsplit_once('-');
    forms.extend(prompt.filter(|(_, n)| is_number(n)).map(|(rest, _)| rest));
    let sample = |form: &&'_ str| form.split_once('_').is_some_and(|(n, _)| is_number(n));
    let mut all: BTreeSet<String> = forms.iter().map(|form| (*form).to_owned()).collect();
    for form in forms {
        let rest = match form.split_once('_') {
            Some((_, rest)) if sample(&form) => rest,
            _ => form,
        };
        all.insert(rest.to_owned());
        let prefixes = ["cmpl-", "chatcmpl-", "embd-", "resp_"].iter();
        let rests = prefixes.filter_map(|prefix| rest.strip_prefix(prefix));
        all.extend(rests.map(str::to_owned));
    }
    all.remove(id);
    // The engine's additions alone are not an id.
    all.retain(|form| !["", "cmpl", "chatcmpl", "embd", "resp"].contains(&form.as_str()));
    all
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}
