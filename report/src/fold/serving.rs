//! Finds the part of a run that the figures cover, from the times with requests in flight, and the phases of the run.

use crate::table::{Pause, RunPhase, RunPhaseKind, ServingTime};

/// Minimum length of a time without requests that figures leave out.
const PAUSE_NS: i64 = 10_000_000_000;

/// The start of a request, and its end if the trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InFlight {
    pub(crate) from_ns: i64,
    pub(crate) to_ns: Option<i64>,
}

/// Returns the serving time between the ends of the trace. If no request was in flight, it is the whole time between
/// them.
pub(crate) fn serving_time(mut requests: Vec<InFlight>, ends_ns: (i64, i64)) -> ServingTime {
    let (first_ns, last_ns) = ends_ns;
    requests.sort_unstable();
    let times = requests.iter().map(|request| {
        let to_ns = request.to_ns.unwrap_or(last_ns).min(last_ns);
        (request.from_ns.max(first_ns), to_ns)
    });
    let (mut found, mut pauses) = (None::<(i64, i64)>, Vec::new());
    for (from_ns, to_ns) in times.filter(|(from_ns, to_ns)| from_ns < to_ns) {
        let (_, end_ns) = found.get_or_insert((from_ns, to_ns));
        if from_ns.saturating_sub(*end_ns) >= PAUSE_NS {
            pauses.push(Pause {
                from_ns: *end_ns,
                to_ns: from_ns,
            });
        }
        *end_ns = to_ns.max(*end_ns);
    }
    let Some((from_ns, to_ns)) = found else {
        return whole_time(ends_ns);
    };
    let paused_ns: i64 = pauses.iter().map(|pause| pause.to_ns - pause.from_ns).sum();
    ServingTime {
        from_ns,
        to_ns,
        wall_ns: to_ns - from_ns - paused_ns,
        pauses,
        is_whole: false,
    }
}

/// Returns the time of a whole trace as its serving time.
pub(crate) fn whole_time((from_ns, to_ns): (i64, i64)) -> ServingTime {
    ServingTime {
        from_ns,
        to_ns,
        wall_ns: to_ns.saturating_sub(from_ns),
        pauses: Vec::new(),
        is_whole: true,
    }
}

/// Returns the phases of a run between its ends, in order. `ready_ns` is the time at which the server was ready, if the
/// trace contains it.
pub(crate) fn run_phases(
    serving: &ServingTime,
    (first_ns, last_ns): (i64, i64),
    ready_ns: Option<i64>,
) -> Vec<RunPhase> {
    if serving.is_whole {
        return Vec::new();
    }
    let ready_ns = ready_ns.map_or(serving.from_ns, |ns| ns.clamp(first_ns, serving.from_ns));
    let mut at_ns = first_ns;
    let mut phases = Vec::new();
    let mut add = |kind, to_ns: i64| {
        if to_ns > at_ns {
            phases.push(RunPhase {
                kind,
                from_ns: at_ns,
                to_ns,
            });
            at_ns = to_ns;
        }
    };
    add(RunPhaseKind::StartUp, ready_ns);
    add(RunPhaseKind::Idle, serving.from_ns);
    for pause in &serving.pauses {
        add(RunPhaseKind::Serving, pause.from_ns);
        add(RunPhaseKind::Idle, pause.to_ns);
    }
    add(RunPhaseKind::Serving, serving.to_ns);
    // Nothing marks the start of a shutdown, and an idle server may stay up for a long time.
    let after = match last_ns.saturating_sub(serving.to_ns) >= PAUSE_NS {
        true => RunPhaseKind::Idle,
        false => RunPhaseKind::Shutdown,
    };
    add(after, last_ns);
    phases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving_clock::ServingClock;

    const S: i64 = 1_000_000_000;

    fn in_flight(times: &[(i64, i64)]) -> Vec<InFlight> {
        let request = |(from_s, to_s): &(i64, i64)| InFlight {
            from_ns: from_s * S,
            to_ns: (*to_s > 0).then_some(to_s * S),
        };
        times.iter().map(request).collect()
    }

    /// Two bursts with a long pause between them, then a request after a short pause.
    #[test]
    fn long_pauses_are_cut_out() {
        let requests = in_flight(&[(100, 103), (120, 121), (101, 110), (125, 126)]);
        let serving = serving_time(requests, (0, 200 * S));
        let pause = Pause {
            from_ns: 110 * S,
            to_ns: 120 * S,
        };
        let times = (serving.from_ns, serving.to_ns, serving.wall_ns);
        assert_eq!(times, (100 * S, 126 * S, 16 * S));
        assert_eq!(serving.pauses, [pause]);
        let clock = ServingClock::new(&serving);
        let times = [0, 100, 109, 110, 115, 120, 121, 126, 500];
        let found = times.map(|s| clock.serving_ns(s * S) / S);
        assert_eq!(found, [100, 100, 109, 110, 110, 110, 111, 116, 116]);
        assert_eq!(
            [100, 109, 110, 111].map(|s| clock.trace_ns(s * S) / S),
            [100, 109, 120, 121]
        );
        let clips = [
            (0, 50),
            (0, 105),
            (105, 130),
            (111, 119),
            (115, 115),
            (105, 105),
        ];
        let found = clips.map(|(from, to)| clock.clip((from * S, to * S)));
        let found = found.map(|clip| clip.map(|(from_ns, to_ns)| (from_ns / S, to_ns / S)));
        let expected = [
            None,
            Some((100, 105)),
            Some((105, 116)),
            None,
            None,
            Some((105, 105)),
        ];
        assert_eq!(found, expected);
        let phases = run_phases(&serving, (0, 200 * S), Some(90 * S));
        let phases: Vec<(&str, i64)> = phases
            .iter()
            .map(|phase| (phase.kind.name(), phase.to_ns / S))
            .collect();
        let expected = [
            ("start_up", 90),
            ("idle", 100),
            ("serving", 110),
            ("idle", 120),
            ("serving", 126),
            ("idle", 200),
        ];
        assert_eq!(phases, expected);
        let phases = run_phases(&serving, (0, 130 * S), None);
        let last = phases.last().map(|phase| (phase.kind, phase.to_ns / S));
        assert_eq!(last, Some((RunPhaseKind::Shutdown, 130)));
    }

    #[test]
    fn a_request_without_an_end_is_in_flight_until_the_trace_ends() {
        let serving = serving_time(in_flight(&[(5, 0), (3, 4)]), (0, 30 * S));
        assert_eq!((serving.from_ns, serving.to_ns), (3 * S, 30 * S));
        assert_eq!(serving.pauses, []);
    }

    #[test]
    fn without_requests_the_whole_run_counts() {
        let serving = serving_time(Vec::new(), (2, 7));
        assert_eq!((serving.wall_ns, serving.is_whole), (5, true));
        let clock = ServingClock::new(&serving);
        assert_eq!(clock.serving_ns(i64::MIN), i64::MIN);
        assert_eq!(clock.clip((0, 1)), Some((0, 1)));
        assert_eq!(run_phases(&serving, (2, 7), None), []);
    }
}
