//! What the first bytes of an input say: how to merge.

use std::path::Path;
use std::time::Duration;
use trace_merge::{Filter, Moment, Options, Output};

/// Options, and what they mean for the trace.
pub(crate) struct Plan {
    pub(crate) options: Options,
    pub(crate) is_gzip: bool,
    pub(crate) is_split: bool,
    pub(crate) is_sorted: bool,
    pub(crate) is_verbatim: bool,
    /// Whether not everything is shown.
    pub(crate) is_part: bool,
}

impl Plan {
    pub(crate) fn new([flags, one, two, three]: [u8; 4], folder: &Path) -> Plan {
        let is = |bit: u8| flags >> bit & 1 == 1;
        let name = if is(0) { "out.json.gz" } else { "out.json" };
        let window = flags >> 4 & 3;
        let is_filtered = is(6);
        let is_part = window > 0 || is_filtered;
        let is_verbatim = is(7) && !is_part && !is(1) && !is(2);
        let mut options = Options {
            output: Output::File(folder.join(name)),
            settle: false,
            link_requests: !is(3),
            threads: 1 + usize::from(three & 1),
            sort: is(1).then_some(u64::from(three) << 8),
            split: (is(2) && !is(1)).then_some(2_000 + u64::from(two) * 100),
            verbatim: is_verbatim,
            filter: if is_filtered {
                filter(three)
            } else {
                Filter::default()
            },
            ..Options::new([folder.to_owned()])
        };
        put_window(&mut options, window, (one, two));
        Plan {
            is_gzip: is(0),
            is_split: options.split.is_some(),
            is_sorted: is(1),
            is_verbatim,
            is_part,
            options,
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

fn put_window(options: &mut Options, kind: u8, (one, two): (u8, u8)) {
    let duration = |byte: u8| Duration::from_micros(u64::from(byte) * 16);
    let moment = match one & 1 {
        0 => Moment::FromStart(duration(one)),
        _ => {
            Moment::Wall(super::recipe::WALL_NS + super::recipe::START_NS + i64::from(one) * 16_000)
        }
    };
    match kind {
        1 => options.last = Some(duration(one)),
        2 => {
            options.from = Some(moment);
            options.to = (two & 1 == 0).then(|| Moment::FromStart(duration(two)));
            options.reach = (two & 2 == 0).then(|| duration(two));
        }
        3 => options.around = Some((moment, duration(two))),
        _ => {}
    }
}
