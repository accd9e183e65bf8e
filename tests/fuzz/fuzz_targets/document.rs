//! Whole documents of every form, with events that nobody should write: whatever is merged passes its own check.
#![no_main]

#[path = "../../../merge/tests/it/mutated/mod.rs"]
mod mutated;

use libfuzzer_sys::fuzz_target;
use mutated::choices::Choices;
use mutated::document::document;
use std::path::PathBuf;
use std::sync::OnceLock;
use trace_merge::check::check;
use trace_merge::{Error, Options, Output, merge};

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

fuzz_target!(
    init: {
        let shared = PathBuf::from("/dev/shm");
        let parent = if shared.is_dir() { shared } else { std::env::temp_dir() };
        let folder = parent.join(format!("trace-merge-fuzz.{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        // SAFETY: nothing else runs yet.
        unsafe { std::env::set_var("TMPDIR", &folder) };
        FOLDER.set(folder).expect("set once");
    },
    |data: &[u8]| {
        let folder = FOLDER.get().expect("made before");
        let document = document(&mut Choices::of(data));
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
    }
);
