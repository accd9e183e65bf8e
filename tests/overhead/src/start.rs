//! What a process pays to start and to end with recording on.

use std::ffi::OsStr;
use std::time::Instant;

use measure::clock::wall_ns;
use measure::{Free, Kind, Peer};

use crate::child::{Child, only};
use crate::ours::Ours;
use crate::scene::Scene;
use crate::series::Series;
use crate::table::Table;

#[derive(Clone, Copy, Debug)]
enum Way {
    Off,
    /// Recording into a directory of its own: it makes the run, and looks for what to clean.
    Main,
    /// Recording as a child that a launcher gave the run to.
    Joining,
}

#[derive(Debug)]
struct Case {
    way: Way,
    init_us: Series,
    first_us: Series,
    life_ms: Series,
    more_ms: Series,
}

/// Every way to start.
#[derive(Debug)]
pub(crate) struct Starts(Vec<Case>);

impl Starts {
    pub(crate) fn new() -> Starts {
        let cases = [Way::Off, Way::Main, Way::Joining].map(|way| Case {
            way,
            init_us: Series::default(),
            first_us: Series::default(),
            life_ms: Series::default(),
            more_ms: Series::default(),
        });
        Starts(cases.into())
    }

    /// Starts a process in each way.
    pub(crate) fn pass(&mut self, scene: &Scene) -> Result<(), String> {
        let mut off_ms = 0.0;
        for case in &mut self.0 {
            let life_ms = case.turn(scene)?;
            if matches!(case.way, Way::Off) {
                off_ms = life_ms;
            }
            case.more_ms.push(life_ms - off_ms);
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> String {
        let head = [
            "process",
            "`Recorder::init` µs",
            "first span µs",
            "start to end ms",
            "more than off ms",
        ];
        let mut table = Table::new(1, head);
        for case in &self.0 {
            let (label, more) = match case.way {
                Way::Off => ("recording off", "–".to_owned()),
                Way::Main => ("on, main process of a new run", case.more_ms.with_noise()),
                Way::Joining => ("on, joining a run", case.more_ms.with_noise()),
            };
            table.row([
                label.to_owned(),
                case.init_us.with_noise(),
                case.first_us.with_noise(),
                case.life_ms.with_noise(),
                more,
            ]);
        }
        table.markdown()
    }
}

impl Case {
    /// Runs one process, and returns the ms from its start to its end.
    fn turn(&mut self, scene: &Scene) -> Result<f64, String> {
        let scratch = scene.scratch("start")?;
        let mut child = Child::new(&["start"])?;
        if !matches!(self.way, Way::Off) {
            child = child.recording_in(scratch.path());
        }
        if matches!(self.way, Way::Joining) {
            let pid = std::process::id().to_string();
            child = child
                .variable("SA_PROFILE_RUN", OsStr::new(&sa_recorder::new_run_id()))
                .variable("SA_PROFILE_MAIN_PID", OsStr::new(&pid));
        }
        let began = Instant::now();
        let lines = child.lines()?;
        let life_ms = began.elapsed().as_secs_f64() * 1e3;
        let [init_ns, first_ns] = only(&lines, "START")?;
        self.init_us.push(init_ns / 1e3);
        self.first_us.push(first_ns / 1e3);
        self.life_ms.push(life_ms);
        Ok(life_ms)
    }
}

/// Starts the recorder, records one span, and prints `START <init_ns> <first_span_ns>`.
pub(crate) fn child() -> Result<(), String> {
    let began = wall_ns();
    let recorder = Ours::start();
    let ready = wall_ns();
    recorder.record(Kind::Span1, 0..1, &mut Free);
    println!("START {} {}", ready - began, wall_ns() - ready);
    Ok(())
}
