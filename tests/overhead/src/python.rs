//! The Python recorders: viztracer and torch's `record_function`.

mod environment;

use std::path::{Path, PathBuf};

use crate::child::{Child, figures};
use crate::kill::{Toll, count_file, kill};
use crate::options::Options;
use crate::python::environment::Environment;
use crate::scene::Scene;
use crate::series::{Series, number};
use crate::table::Table;

/// Kills of one Python recorder at most: torch takes seconds to start, and what is left is no matter of chance.
const KILLS: u32 = 3;

/// A way to open a span in Python.
#[derive(Debug)]
struct Case {
    /// Its word on the script's command line.
    word: &'static str,
    label: String,
    /// Why it is not measured.
    missing: Option<String>,
    /// Whether it keeps what it records.
    records: bool,
    ns: Series,
    ratio: Series,
    floor_ns: Series,
    spans: f64,
    bytes: f64,
    toll: Toll,
}

/// Every case of the section.
#[derive(Debug)]
pub(crate) struct Python {
    program: PathBuf,
    script: PathBuf,
    cases: Vec<Case>,
}

impl Python {
    /// Finds or installs the recorders; those that are not there keep a row that says why.
    pub(crate) fn new(options: &Options, scene: &Scene) -> Result<Python, String> {
        let environment = Environment::prepare(options, scene.target());
        let script = scene.target().join("overhead").join("recorders.py");
        let fail = |error: std::io::Error| format!("{}: {error}", script.display());
        std::fs::create_dir_all(scene.target().join("overhead")).map_err(fail)?;
        std::fs::write(&script, include_str!("python/recorders.py")).map_err(fail)?;
        let Environment {
            program,
            python,
            viztracer,
            torch,
        } = environment;
        let cases = vec![
            Case::new("nothing", "an empty context manager", &python, false),
            Case::new("viztracer", "viztracer, `log_event`", &viztracer, true),
            Case::new(
                "torch-idle",
                "torch, `record_function`, no profiler on",
                &torch,
                false,
            ),
            Case::new(
                "torch-profiling",
                "torch, `record_function`, profiler on",
                &torch,
                true,
            ),
        ];
        Ok(Python {
            program,
            script,
            cases,
        })
    }

    /// Gives every case a turn.
    pub(crate) fn pass(&mut self, scene: &Scene, pass: u32) -> Result<(), String> {
        for case in self.cases.iter_mut().filter(|case| case.missing.is_none()) {
            let scratch = scene.scratch("python")?;
            case.turn(scene, &self.program, &self.script, scratch.path())?;
            if case.records && pass < KILLS.min(scene.effort.kills) {
                case.kill(scene, &self.program, &self.script, scratch.path())?;
            }
        }
        Ok(())
    }

    pub(crate) fn table(&self) -> String {
        let head = ["recorder", "ns", "× two clock reads of Python", "bytes"];
        let mut table = Table::new(1, head);
        for case in &self.cases {
            let mut row = vec![case.label.clone()];
            if let Some(why) = &case.missing {
                row.push(format!("not measured: {why}"));
            } else {
                row.extend([number(case.ns.median()), case.ratio.with_noise()]);
                row.push(match case.spans {
                    0.0 => "–".to_owned(),
                    spans => number(case.bytes / spans),
                });
            }
            table.row(row);
        }
        table.markdown()
    }

    /// Two clock reads in Python.
    pub(crate) fn floor(&self) -> String {
        let measured = self.cases.iter().find(|case| case.missing.is_none());
        measured.map_or("not measured".to_owned(), |case| {
            format!("{} ns", case.floor_ns.with_noise())
        })
    }

    /// The rows of the kills.
    pub(crate) fn kills(&self) -> Vec<Vec<String>> {
        let cases = self.cases.iter().filter(|case| case.records);
        let rows = cases.map(|case| {
            let mut row = vec!["full speed".to_owned(), case.label.clone()];
            match &case.missing {
                Some(why) => row.push(format!("not measured: {why}")),
                None => row.extend(case.toll.cells()),
            }
            row
        });
        rows.collect()
    }
}

impl Case {
    fn new(
        word: &'static str,
        label: &str,
        version: &Result<String, String>,
        records: bool,
    ) -> Case {
        let (label, missing) = match version {
            Ok(version) => (format!("{label} ({version})"), None),
            Err(why) => (label.to_owned(), Some(why.clone())),
        };
        Case {
            word,
            label,
            missing,
            records,
            ns: Series::default(),
            ratio: Series::default(),
            floor_ns: Series::default(),
            spans: 0.0,
            bytes: 0.0,
            toll: Toll::default(),
        }
    }

    fn turn(
        &mut self,
        scene: &Scene,
        program: &Path,
        script: &Path,
        directory: &Path,
    ) -> Result<(), String> {
        let words = [
            "-Wignore".into(),
            script.as_os_str().to_owned(),
            "cost".into(),
            self.word.into(),
            scene.effort.python_spans.to_string().into(),
            scene.effort.rounds.to_string().into(),
            directory.join("trace.json").into(),
        ];
        for line in Child::of(program.as_os_str()).words(&words).lines()? {
            if let Some([ns, floor_ns]) = figures(&line, "ROUND") {
                self.ns.push(ns);
                self.floor_ns.push(floor_ns);
                self.ratio.push(ns / floor_ns);
            } else if let Some([spans, bytes]) = figures(&line, "DISK") {
                self.spans += spans;
                self.bytes += bytes;
            } // what a library prints is its own business
        }
        Ok(())
    }

    /// Kills one process; the spans in the file that it leaves, if any, are counted by their name.
    fn kill(
        &mut self,
        scene: &Scene,
        program: &Path,
        script: &Path,
        directory: &Path,
    ) -> Result<(), String> {
        let file = directory.join("killed.json");
        let words = [
            "-Wignore".into(),
            script.as_os_str().to_owned(),
            "victim".into(),
            self.word.into(),
            count_file(directory).into(),
            file.clone().into(),
        ];
        let victim = Child::of(program.as_os_str()).words(&words).into_command();
        let acknowledged = kill(victim, directory, scene.effort.life_ms)?;
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let found = text.matches("\"decode\"").count() as u64;
        self.toll.add(acknowledged, (0..found).collect());
        Ok(())
    }
}
