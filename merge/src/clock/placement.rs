//! What a merge says of the clocks of several hosts.

use crate::align::{By, Curve, Host, Place};
use serde::Serialize;

/// How the times of one boot were placed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Nanoseconds added to its monotonic clock, at its first event if it drifts.
    pub shift_ns: i64,
    /// `shared`: it is the reference; `wall_clock`: by its anchors; `wall_clock_and_flows`: by its anchors, and by flows from and to other hosts;
    /// `flows`: by these alone; `wall_clock_and_collectives` and `collectives`: likewise by collectives, where there are no flows; `none`: nothing tells, and it was left where it is.
    pub method: &'static str,
    /// What its times may be off, against the reference, in ns; `None` where they may be off by any time.
    pub uncertainty_ns: Option<u64>,
    /// How much slower than the reference's its monotonic clock ran, in parts per million: so much is added to its times.
    pub drift_ppm: f64,
    /// How often its wall clock was set while it was recorded.
    pub steps: usize,
    /// Arrows of flows from and to other hosts.
    pub flows: u64,
    /// Collectives that it ended together with other hosts.
    pub collectives: u64,
    /// Those of them that end before they begin by more than both clocks may be off.
    pub contradicting_flows: u64,
    /// How far ahead its wall clock was set, in ns, if flows say that it was set wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_off_ns: Option<i64>,
}

impl Placement {
    pub(crate) fn new(
        (host_name, boot_id): &(String, String),
        host: &Host,
        place: &Place,
        is_reference: bool,
    ) -> Placement {
        let (first_ns, last_ns) = host.events_ns.unwrap_or_default();
        let method = match place.by {
            _ if is_reference => "shared",
            By::Anchors => "wall_clock",
            By::Both if place.flows == 0 => "wall_clock_and_collectives",
            By::Both => "wall_clock_and_flows",
            By::Flows if place.flows == 0 => "collectives",
            By::Flows => "flows",
            By::Nothing => "none",
        };
        let uncertainty_ns = match is_reference {
            true => Some(0),
            false => place.uncertainty_ns.map(i64::unsigned_abs),
        };
        Placement {
            host: host_name.clone(),
            boot_id: boot_id.clone(),
            shift_ns: place.curve.at(first_ns).saturating_sub(first_ns),
            method,
            uncertainty_ns,
            drift_ppm: drift_ppm(&place.curve, (first_ns, last_ns)),
            steps: host.wall.as_ref().map_or(0, |wall| wall.steps),
            flows: place.flows,
            collectives: place.collectives,
            contradicting_flows: place.contradicting,
            wall_off_ns: place.wall_off_ns,
        }
    }

    /// It in words.
    pub(crate) fn words(&self) -> String {
        let by = match self.method {
            "wall_clock" => "by its wall clock",
            "wall_clock_and_flows" => "by its wall clock and by flows",
            "wall_clock_and_collectives" => "by its wall clock and by collectives",
            "flows" => "by flows alone",
            "collectives" => "by collectives alone",
            _ => "as it was recorded",
        };
        let off = match self.uncertainty_ns {
            Some(ns) => format!("±{}", duration(ns)),
            None => "off by any time".to_owned(),
        };
        let mut words = format!(
            "clock of {}: placed {by}, shifted by {} ns, {off}",
            self.host, self.shift_ns
        );
        let mut add = |is_so: bool, more: String| {
            if is_so {
                words.push_str(", ");
                words.push_str(&more);
            }
        };
        let (ppm, steps) = (self.drift_ppm, self.steps);
        add(ppm != 0.0, format!("drift {ppm:+} ppm"));
        add(steps > 0, format!("wall clock set {steps} times"));
        let (flows, against) = (self.flows, self.contradicting_flows);
        add(flows > 0, format!("{flows} flows from and to other hosts"));
        let words_against = format!("of which {against} go back in time all the same");
        add(against > 0, words_against);
        let collectives = self.collectives;
        let words_with = format!("{collectives} collectives with other hosts");
        add(collectives > 0, words_with);
        if let Some(ns) = self.wall_off_ns {
            let side = if ns < 0 { "behind" } else { "ahead" };
            let off = duration(ns.unsigned_abs());
            add(true, format!("its wall clock was {off} {side}"));
        }
        words
    }
}

/// A time in a unit that suits it.
fn duration(ns: u64) -> String {
    let (unit, of) = match ns {
        0..10_000 => ("ns", 1),
        10_000..10_000_000 => ("us", 1_000),
        10_000_000..10_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    format!("{} {unit}", ns.div_ceil(of))
}

/// In parts per million, with three decimals.
fn drift_ppm(curve: &Curve, (first_ns, last_ns): (i64, i64)) -> f64 {
    let (own, axis) = (last_ns - first_ns, curve.at(last_ns) - curve.at(first_ns));
    if own <= 0 || curve.as_shift().is_some() {
        return 0.0;
    }
    let ppm = (axis - own) as f64 * 1e6 / own as f64;
    (ppm * 1e3).round() / 1e3
}
