//! Derives the merge options from the first bytes of an input.

use std::path::Path;
use std::time::Duration;
use trace_merge::{EventOptions, Filter, Layout, Mode, Moment, Options, Output, Window};

/// Wall-clock time at the start of the run.
const START_NS: i64 = 1_795_248_907_000_000_000;

/// Merge options and their consequences for the trace.
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) is_gzip: bool,
    pub(crate) is_split: bool,
    pub(crate) is_verbatim: bool,
}

impl Plan {
    pub(crate) fn new([flags, one, two, three]: [u8; 4], folder: &Path) -> Plan {
        let is = |bit: u8| flags >> bit & 1 == 1;
        let name = if is(0) { "out.json.gz" } else { "out.json" };
        let window = flags >> 4 & 3;
        let is_filtered = is(6);
        let is_verbatim = is(7) && !is_filtered && window == 0 && !is(1) && !is(2);
        let layout = match (is(1), is(2)) {
            (true, _) => Layout::Sorted {
                memory: u64::from(three) << 8,
            },
            (false, true) => Layout::Parts {
                bytes: 2_000 + u64::from(two) * 100,
            },
            (false, false) => Layout::Recorded,
        };
        let events = EventOptions {
            window: window_from(window, (one, two)),
            filter: if is_filtered {
                filter(three)
            } else {
                Filter::default()
            },
            layout,
            link_requests: !is(3),
        };
        Plan {
            options: Options {
                output: Output::File(folder.join(name)),
                mode: match is_verbatim {
                    true => Mode::Verbatim,
                    false => Mode::Events(events),
                },
                settle: false,
                threads: 1 + usize::from(three & 1),
                ..Options::new([folder.to_owned()])
            },
            is_gzip: is(0),
            is_split: matches!(layout, Layout::Parts { .. }),
            is_verbatim,
        }
    }
}

fn filter(choice: u8) -> Filter {
    let mut filter = Filter::default();
    match choice % 5 {
        0 => filter.pids.push(i64::from(choice)),
        1 => filter.processes.push("serve".to_owned()),
        2 => filter.names.push("name [01]".to_owned()),
        3 => filter.categories.push("worker".to_owned()),
        _ => filter.requests.push("cmpl-1".to_owned()),
    }
    filter
}

fn window_from(kind: u8, (one, two): (u8, u8)) -> Window {
    let duration = |byte: u8| Duration::from_millis(u64::from(byte) * 4);
    let moment = match one & 1 {
        0 => Moment::FromStart(duration(one)),
        _ => Moment::Wall(START_NS + i64::from(one) * 4_000_000),
    };
    match kind {
        1 => Window::Last(duration(one)),
        2 => Window::Between {
            from: Some(moment),
            to: (two & 1 == 0).then(|| Moment::FromStart(duration(two))),
            reach: (two & 2 == 0).then(|| duration(two)),
        },
        3 => Window::Around {
            moment,
            side: duration(two),
            reach: None,
        },
        _ => Window::WholeRun,
    }
}
