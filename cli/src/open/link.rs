//! Creates the link that opens a trace in Perfetto: where it is fetched, which time is shown, and which tracks are expanded.
//!
//! Perfetto documents these parameters under "Deep linking to the Perfetto UI", and the commands in its "Commands Automation Reference".

use serde_json::json;
use trace_report::TraceView;

/// Returns the link for a trace at an address on this machine. `shown_ns` is the time to show, in ns as in the trace.
pub(super) fn link(
    address: &str,
    shown_ns: Option<(i64, i64)>,
    view: Option<&TraceView>,
) -> String {
    let mut link = format!("https://ui.perfetto.dev/#!/?url=http://{address}");
    if let Some((from, to)) = shown_ns {
        link += &format!("&visStart={from}&visEnd={to}");
    }
    let expanded = view.map_or(&[][..], |view| &view.expanded);
    if !expanded.is_empty() {
        let commands = json!([{
            "id": "dev.perfetto.ExpandTracksByRegex",
            "args": [process_pattern(expanded)],
        }]);
        link += "&startupCommands=";
        link += &percent_encoded(commands.to_string().as_bytes(), b"-._~");
    }
    link
}

/// Returns a regular expression for the track groups of these processes, which Perfetto names by process and pid. It shortens a path to its last
/// part.
fn process_pattern(names: &[String]) -> String {
    let names = names.iter().map(|name| {
        let is_path = name.starts_with('/');
        let last = name.rsplit('/').next().filter(|_| is_path);
        let escaped = last.unwrap_or(name).chars().flat_map(|char| {
            let is_special = r"\^$.|?*+()[]{}".contains(char);
            is_special.then_some('\\').into_iter().chain([char])
        });
        escaped.collect()
    });
    format!(r"^({}) \d+$", names.collect::<Vec<String>>().join("|"))
}

/// Returns the time to show, in ns as in the trace: the selected time, which is in ns from the start of the trace, or the serving time. Returns
/// `None` for the whole trace.
///
/// Perfetto shows the whole trace if it is asked for a time outside it.
pub(super) fn shown_ns(
    asked_ns: Option<(i64, i64)>,
    view: Option<&TraceView>,
) -> Option<(i64, i64)> {
    let Some(view) = view else {
        // Perfetto shows everything if the end is not known.
        return asked_ns.filter(|(_, to)| *to < i64::MAX);
    };
    let later = |ns: i64| ns.saturating_add(view.begin_ns);
    let asked_ns = asked_ns.map(|(from, to)| (later(from), later(to)));
    let (from, to) = asked_ns.or(view.serving_ns)?;
    let (from, to) = (from.max(view.begin_ns), to.min(view.end_ns));
    (from < to).then_some((from, to))
}

/// Percent-encodes bytes for an address. Letters, digits and `plain` stay as they are.
pub(super) fn percent_encoded(bytes: &[u8], plain: &[u8]) -> String {
    let encode = |byte: &u8| match byte.is_ascii_alphanumeric() || plain.contains(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(serving_ns: Option<(i64, i64)>, expanded: &[&str]) -> TraceView {
        TraceView {
            begin_ns: 10,
            end_ns: 100,
            serving_ns,
            expanded: expanded.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_time_that_was_asked_for_comes_before_the_serving_time() {
        let (serving, whole) = (view(Some((50, 120)), &[]), view(None, &[]));
        for (asked, view, expected) in [
            (None, None, None),
            (Some((3, 900)), None, Some((3, 900))),
            (Some((3, i64::MAX)), None, None),
            (None, Some(&whole), None),
            (None, Some(&serving), Some((50, 100))),
            (Some((0, 20)), Some(&serving), Some((10, 30))),
            (Some((20, i64::MAX)), Some(&whole), Some((30, 100))),
            (Some((90, 200)), Some(&serving), None),
        ] {
            assert_eq!(shown_ns(asked, view), expected, "{asked:?} {view:?}");
        }
    }

    #[test]
    fn a_link_has_the_time_and_the_rows() {
        let expected = "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/t.json";
        assert_eq!(link("127.0.0.1:9001/t.json", None, None), expected);
        let view = view(None, &["NPU 0 (a)", "/usr/bin/python3"]);
        let found = link("127.0.0.1:9001/t.json", Some((5, 7)), Some(&view));
        let rest = found.strip_prefix(expected).unwrap();
        assert_eq!(
            rest,
            "&visStart=5&visEnd=7&startupCommands=%5B%7B%22args%22%3A%5B%22%5E%28NPU%200%20%5C%5C%28a%5C%5C%29%7Cpython3%29%20%5C%5Cd%2B%24%22%5D%2C\
             %22id%22%3A%22dev.perfetto.ExpandTracksByRegex%22%7D%5D"
        );
    }
}
