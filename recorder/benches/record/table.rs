//! What the children printed, as a table and as results.

use measure::quantile::{median, quantile};
use measure::tail::Tail;

use crate::case::Case;

/// What the children of one case printed.
#[derive(Default)]
pub(crate) struct Measured {
    span_ns: Vec<f64>,
    floor_ns: Vec<f64>,
    cpu_ns: Vec<f64>,
    cpu_ratio: Vec<f64>,
    total_cpu_ns: Vec<f64>,
    ratio: Vec<f64>,
    // Whole numbers far below 2^53.
    expected: f64,
    events: f64,
    bytes: f64,
}

/// One tail case: runs with spans and control runs, a pair per pass.
pub(crate) struct TailMeasured {
    pub(crate) name: &'static str,
    pub(crate) span: Vec<Tail>,
    pub(crate) control: Vec<Tail>,
}

impl Measured {
    /// Takes one line that a child printed; `None` if it is none of ours.
    pub(crate) fn take(&mut self, line: &str) -> Option<()> {
        let (kind, fields) = line.split_once(' ')?;
        let fields: Result<Vec<f64>, _> = fields.split(' ').map(str::parse).collect();
        match (kind, fields.ok()?.as_slice()) {
            ("ROUND", &[span_ns, floor_ns, cpu_ns, floor_cpu_ns, total_cpu_ns]) => {
                self.span_ns.push(span_ns);
                self.floor_ns.push(floor_ns);
                self.cpu_ns.push(cpu_ns);
                self.cpu_ratio.push(cpu_ns / floor_cpu_ns);
                self.total_cpu_ns.push(total_cpu_ns);
                self.ratio.push(span_ns / floor_ns);
            }
            ("DISK", &[expected, events, bytes]) => {
                self.expected += expected;
                self.events += events;
                self.bytes += bytes;
            }
            _ => return None,
        }
        Some(())
    }

    fn bytes_per_event(&self) -> f64 {
        if self.events > 0.0 {
            self.bytes / self.events
        } else {
            0.0
        }
    }
}

/// Prints the table and returns how many events were lost or doubled.
pub(crate) fn print_table(measured: &[(&Case, Measured)]) -> f64 {
    if measured.is_empty() {
        return 0.0;
    }
    println!(
        "\nns per span and thread, medians. floor: two clock reads; p10, p90: of the ratio; cpu: the recording threads' CPU time,"
    );
    println!(
        "and its ratio to the floor in CPU time; total: CPU time of all threads until everything is written; lost: events that are not on the disk"
    );
    println!(
        "{:<20}{:>7}{:>9}{:>8}{:>8}{:>7}{:>7}{:>9}{:>7}{:>9}{:>9}{:>6}",
        "case",
        "rounds",
        "ns",
        "floor",
        "ratio",
        "p10",
        "p90",
        "cpu",
        "ratio",
        "total",
        "B/event",
        "lost"
    );
    for (case, figures) in measured {
        println!(
            "{:<20}{:>7}{:>9.1}{:>8.1}{:>8.2}{:>7.2}{:>7.2}{:>9.1}{:>7.2}{:>9.1}{:>9.0}{:>6}",
            case.name,
            figures.ratio.len(),
            median(&figures.span_ns),
            median(&figures.floor_ns),
            median(&figures.ratio),
            quantile(&figures.ratio, 0.1),
            quantile(&figures.ratio, 0.9),
            median(&figures.cpu_ns),
            median(&figures.cpu_ratio),
            median(&figures.total_cpu_ns),
            figures.bytes_per_event(),
            figures.expected - figures.events,
        );
    }
    measured
        .iter()
        .map(|(_, figures)| (figures.expected - figures.events).abs())
        .sum()
}

/// Prints the tails.
pub(crate) fn print_tails(tails: &[TailMeasured]) {
    if tails.is_empty() {
        return;
    }
    println!(
        "\n50,000 spans/s in one thread, µs per span, medians over the runs (max: over all); control: two clock reads at the same pace"
    );
    println!(
        "{:<20}{:>6}{:>9}{:>9}{:>9}{:>10}",
        "case", "runs", "p50", "p99.9", "p99.99", "max"
    );
    for tail in tails {
        for (kind, runs) in [("span", &tail.span), ("control", &tail.control)] {
            let us = |field: fn(&Tail) -> f64| median_of(runs, field) / 1e3;
            let max = runs.iter().map(|run| run.max).fold(0.0, f64::max) / 1e3;
            let label = format!("{} {kind}", tail.name);
            println!(
                "{label:<20}{:>6}{:>9.2}{:>9.2}{:>9.2}{max:>10.1}",
                runs.len(),
                us(|t| t.p50),
                us(|t| t.p999),
                us(|t| t.p9999)
            );
        }
    }
}

fn median_of(runs: &[Tail], field: fn(&Tail) -> f64) -> f64 {
    median(&runs.iter().map(field).collect::<Vec<f64>>())
}

/// Prints the lines that other programs read.
pub(crate) fn print_results(measured: &[(&Case, Measured)], tails: &[TailMeasured]) {
    println!();
    for (case, figures) in measured {
        println!(
            "RESULT {} {:.2} {:.3}",
            case.name,
            median(&figures.span_ns),
            median(&figures.ratio)
        );
    }
    for tail in tails {
        let (span, control) = (
            median_of(&tail.span, |t| t.p9999),
            median_of(&tail.control, |t| t.p9999),
        );
        println!("RESULT {} {span:.0} {:.3}", tail.name, span / control);
    }
}
