//! Events as the recorders of each form write them, with members that they would not write.

use crate::random::Rng;

/// Key and value of each member, as JSON text.
pub(crate) type Members = Vec<(String, String)>;

/// Values that a member should not have, or hardly ever has.
pub(crate) const ODD: &str = r#"null true false "" "text" "5" "+5" "5." "NaN" "1e999" "0x1f" "zz" 1e999 -1e999 1E+400 -0 -0.0 0 1 -7 9007199254740993 9223372036854775807 9223372036854775808 18446744073709551616 1.5 0.0004 1763689523000050.074 1e-999 1e3 NaN -Infinity [[[[[[[[[[1]]]]]]]]]] {} [] {"a":1} {"a":1e999} {"name":1e999,"a":{"b":[]}} [1e999] "\ud83d" "C:\\" "\ud83e\udd14\"q\"" "a\u0000\u202eb\n""#;

/// Every key that viewers use, and two that they do not.
pub(crate) const KEYS: &str = "ph ts dur tts tdur pid tid name cat id id2 bind_id bp s args scope cname sf stack esf estack flow_in flow_out use_async_tts tidelta id_ other";

/// Phases that viewers know, and some that they do not.
pub(crate) const PHASES: &str = "XXXXBEiICRsstffbbneeMcSTFpPOND(v";

/// Returns the members of a valid event with this phase.
pub(crate) fn event(phase: char, number: usize) -> Members {
    let thread = 1 + number % 7;
    let mut members = vec![
        ("ph".to_owned(), format!("\"{phase}\"")),
        ("name".to_owned(), format!("\"n{}\"", number % 5)),
        ("cat".to_owned(), "\"c\"".to_owned()),
        ("ts".to_owned(), format!("{}", 5_000_000 + 100 * number)),
        ("pid".to_owned(), "900".to_owned()),
        ("tid".to_owned(), thread.to_string()),
    ];
    let mut add = |key: &str, value: String| members.push((key.to_owned(), value));
    match phase {
        'X' => add("dur", "50".to_owned()),
        'i' | 'I' => add("s", "\"t\"".to_owned()),
        's' | 't' | 'f' | 'b' | 'n' | 'e' | 'S' | 'T' | 'F' | 'p' => {
            add("id", (number / 4).to_string());
        }
        _ => {}
    }
    if phase == 'f' {
        add("bp", "\"e\"".to_owned());
    }
    match phase {
        'C' => add("args", format!("{{\"v\":{number}}}")),
        'M' => add("args", format!("{{\"name\":\"p{number}\"}}")),
        _ => add("args", format!("{{\"serial\":{number}}}")),
    }
    if phase == 'M' {
        let name = ["process_name", "thread_name", "process_labels", "other"][number % 4];
        set(&mut members, "name", &format!("\"{name}\""));
    }
    members
}

/// Sets a member to another value, or adds it.
pub(crate) fn set(members: &mut Members, key: &str, value: &str) {
    match members.iter_mut().find(|(other, _)| other == key) {
        Some((_, old)) => value.clone_into(old),
        None => members.push((key.to_owned(), value.to_owned())),
    }
}

/// Changes some members.
pub(crate) fn mutate(members: &mut Members, rng: &mut Rng) {
    for _ in 0..1 + rng.below(2) {
        let key = rng.word(KEYS);
        let value = rng.word(ODD);
        match rng.below(8) {
            0 => members.retain(|(other, _)| other != key),
            1 => members.push((key.to_owned(), value.to_owned())),
            2 => members.insert(0, (key.to_owned(), value.to_owned())),
            3 => {
                let (one, other) = (rng.below(members.len()), rng.below(members.len()));
                if one < members.len() && other < members.len() {
                    members.swap(one, other);
                }
            }
            4 => {
                let inner = format!("{{\"v\":1,\"w\":{value},\"name\":{value}}}");
                set(members, "args", &inner);
            }
            5 => set(members, "id2", &format!("{{\"local\":{value},\"x\":1}}")),
            _ => set(members, key, value),
        }
    }
}

/// Returns an object with these members, separated by `space`.
pub(crate) fn object(members: &Members, space: &str) -> String {
    let pairs = members
        .iter()
        .map(|(key, value)| format!("\"{key}\":{space}{value}"));
    format!(
        "{{{}}}",
        pairs.collect::<Vec<_>>().join(&format!(",{space}"))
    )
}
