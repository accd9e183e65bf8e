//! Whole documents of every form, with events that nobody should write: whatever is merged passes its own check.
#![no_main]

mod folder;
#[path = "../../../merge/tests/it/mutated/mod.rs"]
mod mutated;
#[allow(dead_code, reason = "merge's tests share this file")]
#[path = "../../../merge/tests/it/random.rs"]
mod random;

use folder::folder;
use libfuzzer_sys::fuzz_target;
use mutated::document::document;
use random::Rng;
use trace_merge::check::check;
use trace_merge::{Error, Options, Output, merge};

fuzz_target!(|data: &[u8]| {
    let folder = folder();
    let document = document(&mut Rng::of(data.to_vec()));
    let path = folder.join(document.name);
    std::fs::write(&path, &document.text).expect("room");
    let output = folder.join("out.json");
    let options = Options {
        output: Output::File(output.clone()),
        settle: false,
        threads: 1,
        ..Options::new([path.clone()])
    };
    let merged = merge(&options);
    std::fs::remove_file(path).expect("it was there");
    if let Err(error) = merged {
        let is_refusal = matches!(error, Error::NothingUsable(_) | Error::Usage(_));
        assert!(is_refusal, "{error}");
        return;
    }
    let checked = check(&output).expect("the trace can be read");
    std::fs::remove_file(output).expect("it was there");
    for finding in checked.findings {
        assert!(finding.rule.is_of_recording(), "{}", finding.rule.name());
    }
});
