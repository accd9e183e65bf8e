//! The report on the clocks of several hosts.

use crate::align::{Alignment, By, Curve, Host};
use crate::base::plural::plural;
use serde::Serialize;

/// Alignment of the times of one boot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placement {
    /// Host name.
    pub host: String,
    /// Kernel boot id.
    pub boot_id: String,
    /// Time in ns that was added to its monotonic clock; at its first event if the clock drifts.
    pub shift_ns: i64,
    /// Evidence for the alignment. `shared`: it is the reference. `wall_clock`: its anchors.
    /// `wall_clock_and_flows`: its anchors, and flows from and to other hosts. `flows`: only flows.
    /// `wall_clock_and_collectives` and `collectives`: the same with collectives, if there are no
    /// flows. `none`: no evidence, so its times are unchanged.
    pub method: &'static str,
    /// Maximum error of its times against the reference, in ns; `None` if it is unbounded.
    pub uncertainty_ns: Option<u64>,
    /// Parts per million by which its monotonic clock ran slower than the reference's. Its times
    /// are stretched by this.
    pub drift_ppm: f64,
    /// Number of times that its wall clock was set during the recording.
    pub steps: usize,
    /// Number of arrows of flows from and to other hosts.
    pub flows: u64,
    /// Number of collectives that it ended together with other hosts.
    pub collectives: u64,
    /// Number of flows that end before they begin by more than the error of both clocks.
    pub contradicting_flows: u64,
    /// Time in ns by which its wall clock was ahead, if flows show that it was set wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_off_ns: Option<i64>,
}

impl Placement {
    pub(crate) fn new(
        (host_name, boot_id): &(String, String),
        host: &Host,
        place: &Alignment,
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

    /// Formats the line for the summary.
    pub(crate) fn text(&self) -> String {
        let by = match self.method {
            "wall_clock" => "placed by its wall clock",
            "wall_clock_and_flows" => "placed by its wall clock and by flows",
            "wall_clock_and_collectives" => "placed by its wall clock and by collectives",
            "flows" => "placed by flows alone",
            "collectives" => "placed by collectives alone",
            _ => "left as it was recorded",
        };
        let off = match self.uncertainty_ns {
            Some(ns) => format!("±{}", duration(ns)),
            None => "unknown error".to_owned(),
        };
        let mut text = format!(
            "clock of {}: {by}, shifted by {} ns, {off}",
            self.host, self.shift_ns
        );
        let mut add = |is_so: bool, more: String| {
            if is_so {
                text.push_str(", ");
                text.push_str(&more);
            }
        };
        let (ppm, steps) = (self.drift_ppm, self.steps);
        add(ppm != 0.0, format!("drift {ppm:+} ppm"));
        let set = plural(steps as u64, "time");
        add(steps > 0, format!("wall clock set {set}"));
        let flows = plural(self.flows, "flow");
        add(self.flows > 0, format!("{flows} to or from other hosts"));
        let backwards = self.contradicting_flows;
        add(
            backwards > 0,
            format!("{backwards} of them backwards in time"),
        );
        let collectives = plural(self.collectives, "collective");
        add(
            self.collectives > 0,
            format!("{collectives} with other hosts"),
        );
        if let Some(ns) = self.wall_off_ns {
            let side = if ns < 0 { "behind" } else { "ahead" };
            let off = duration(ns.unsigned_abs());
            add(true, format!("its wall clock was {off} {side}"));
        }
        text
    }
}

/// Formats a time in a suitable unit.
fn duration(ns: u64) -> String {
    let (unit, unit_ns) = match ns {
        0..10_000 => ("ns", 1),
        10_000..10_000_000 => ("us", 1_000),
        10_000_000..10_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    format!("{} {unit}", ns.div_ceil(unit_ns))
}

/// Returns the drift in parts per million, rounded to three decimals.
fn drift_ppm(curve: &Curve, (first_ns, last_ns): (i64, i64)) -> f64 {
    let (own, axis) = (last_ns - first_ns, curve.at(last_ns) - curve.at(first_ns));
    if own <= 0 || curve.as_shift().is_some() {
        return 0.0;
    }
    let ppm = (axis - own) as f64 * 1e6 / own as f64;
    (ppm * 1e3).round() / 1e3
}
