//! The page: everything measured, pass by pass, and printed with the words of `page.txt`.

use crate::cost::Cost;
use crate::effort::Effort;
use crate::footprint::Footprint;
use crate::kill::{Kills, life_ms};
use crate::machine;
use crate::start::Starts;
use crate::table::{self, whole};
use crate::tails::Tails;

const WORDS: &str = include_str!("page.txt");
/// The paragraphs that only some runs have.
const SHORT: &str =
    "**A short run, to check the program: these numbers are not to be quoted.**\n\n";
const BUSY: &str = "**Other programs kept the machine busy during this run.** Times are longer than on a quiet one, and p90 far longer. p10 and the CPU time say more than the median.\n\n";

/// The sections of the page that have figures.
struct Page {
    cost: Cost,
    tails: Tails,
    starts: Starts,
    footprint: Footprint,
    kills: Kills,
}

/// Measures everything and prints the page.
pub(crate) fn print(effort: Effort) -> Result<(), String> {
    let load_before = machine::load_average();
    let mut page = Page {
        cost: Cost::new(),
        tails: Tails::new(),
        starts: Starts::default(),
        footprint: Footprint::default(),
        kills: Kills::new(),
    };
    for pass in 0..effort.passes() {
        page.pass(effort, pass)?;
    }
    print!("{}", page.text(effort, &load_before));
    Ok(())
}

impl Page {
    /// Gives every case its turns: a slow minute of the machine falls on all of them.
    fn pass(&mut self, effort: Effort, pass: u64) -> Result<(), String> {
        let passes = effort.passes();
        let turns = |section: &str, all: u64| {
            eprintln!("overhead: {section}, {}/{passes}", pass + 1);
            0..all / passes + u64::from(pass < all % passes)
        };
        turns("single events", passes).try_for_each(|_| self.cost.pass(effort))?;
        turns("tails", effort.select(3, 1, 1)).try_for_each(|_| self.tails.pass(effort))?;
        turns("starts", effort.select(60, 5, 2)).try_for_each(|_| self.starts.pass())?;
        turns("footprint", passes).try_for_each(|_| self.footprint.pass())?;
        turns("kills", effort.select(12, 2, 1)).try_for_each(|_| self.kills.pass(effort))
    }

    /// Returns the whole page.
    fn text(&self, effort: Effort, load_before: &str) -> String {
        let short = if effort == Effort::Full { "" } else { SHORT };
        let busy = if machine::is_busy(load_before) {
            BUSY
        } else {
            ""
        };
        let mut page = WORDS.to_owned();
        for (place, text) in [
            ("{notes}", format!("{short}{busy}")),
            ("{machine}", self.machine(load_before)),
            ("{by kind}", self.cost.by_kind()),
            ("{by recorder}", self.cost.by_recorder()),
            ("{tails}", self.tails.table()),
            ("{starts}", self.starts.table()),
            ("{footprint}", self.footprint.table()),
            ("{fast}", whole(life_ms(effort, false) as f64)),
            ("{paced}", whole(life_ms(effort, true) as f64)),
            ("{kills}", self.kills.table()),
        ] {
            page = page.replace(place, &text);
        }
        page
    }

    fn machine(&self, load_before: &str) -> String {
        let mut rows = machine::description();
        for (name, value) in [
            ("load average before", load_before.to_owned()),
            ("load average after", machine::load_average()),
            (
                "two clock reads, one thread",
                format!("{} ns", self.cost.floor()),
            ),
        ] {
            rows.push(vec![name.to_owned(), value]);
        }
        table::markdown(2, &["measured on", ""], rows)
    }
}
