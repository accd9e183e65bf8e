//! The page: everything measured, pass by pass, and written in a fixed order.

mod output;
mod text;

use crate::cost::Cost;
use crate::footprint::Footprint;
use crate::kill::Kills;
use crate::machine::Machine;
use crate::options::Options;
use crate::page::output::Output;
use crate::python::Python;
use crate::scene::Scene;
use crate::start::Starts;
use crate::tails::Tails;

/// What is measured.
#[derive(Debug)]
struct Page {
    machine: Machine,
    cost: Cost,
    python: Python,
    tails: Tails,
    starts: Starts,
    footprint: Footprint,
    kills: Kills,
}

/// Measures everything and writes the page.
pub(crate) fn write(options: &Options) -> Result<(), String> {
    let scene = Scene::new(options.effort())?;
    let output = options.output().map(Output::create).transpose()?;
    let mut page = Page {
        machine: Machine::look(scene.target()),
        cost: Cost::new(),
        python: Python::new(options, &scene)?,
        tails: Tails::new(),
        starts: Starts::new(),
        footprint: Footprint::new(),
        kills: Kills::new(),
    };
    let passes = scene.effort.passes;
    for pass in 0..passes {
        page.pass(&scene, pass)?;
    }
    page.machine.finish();
    let text = page.text(&options.command(), &scene.effort);
    match output {
        None => {
            print!("{text}");
            Ok(())
        }
        Some(output) => output.put(&text),
    }
}

impl Page {
    /// One turn of every case: a slow minute of the machine falls on all of them.
    fn pass(&mut self, scene: &Scene, pass: u32) -> Result<(), String> {
        let effort = &scene.effort;
        let tell = |section| scene.tell(section, pass, effort.passes);
        let share = |all: u32| all / effort.passes + u32::from(pass < all % effort.passes);
        tell("single events");
        self.cost.pass(scene)?;
        tell("Python recorders");
        self.python.pass(scene, pass)?;
        tell("tails");
        (0..share(effort.tail_runs)).try_for_each(|_| self.tails.pass(scene))?;
        tell("starts");
        (0..share(effort.starts)).try_for_each(|_| self.starts.pass(scene))?;
        tell("footprint");
        self.footprint.pass(scene)?;
        tell("kills");
        (0..share(effort.kills)).try_for_each(|_| self.kills.pass(scene))
    }
}
