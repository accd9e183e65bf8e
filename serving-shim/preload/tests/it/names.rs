//! Kernel names in the trace, and calls inside other calls, which are parts of them.

use crate::fakes::{fakes, links};
use c_programs::end;
use std::collections::BTreeMap;

#[test]
fn kernels_have_the_names_they_were_asked_for_by() {
    let ground = fakes();
    let links = [links(), vec!["-lfake_answer".to_owned()]].concat();
    let program = ground.program("naming", &["naming.c"], &links);
    let ended = end(ground.watched(program).env("FAKE_QUIET", "1"));
    // Once for the handle without a name, once for the one that the runtime does not know.
    let outcome = (ended.code, ended.stdout.as_str());
    assert_eq!(outcome, (42, "asked 2\n"), "{ended:?}");
    let trace = ground.trace();
    for (name, times, raw) in [
        // Also by the rt level.
        (
            "MatMulV2",
            2,
            Some("8f9d3c5e7a1b2d4f6081a2b3c4d5e6f7_1_mix_aic"),
        ),
        ("Renamed", 1, None),
        // One of them was refused.
        ("AskedFor", 5, Some("0123456789abcdef0123456789abcdef_1")),
        // Kernels without a name.
        ("aclrtLaunchKernel", 4, None),
        ("triton_poi_fused_add_0", 2, None),
        // Named after its binary.
        ("PagedAttention", 1, Some("0123456789abcdef")),
        ("rtKernelLaunchWithHandleV2", 1, None),
    ] {
        let named = trace.with("name", name);
        let raw = raw.map(|hash| format!("{name}_{hash}"));
        let kernel = named[0]["args"]["kernel"].as_str();
        assert_eq!((named.len(), kernel), (times, raw.as_deref()), "{name}");
    }
    assert_eq!(trace.recorded().count(), 16, "{:?}", trace.counts());
}

#[test]
fn a_call_that_is_made_of_others_is_recorded_once() {
    let ground = fakes();
    ground.library("libascendcl.so", "old_acl.c", &["-l:libruntime.so"]);
    let program = ground.program("old", &["old_program.c"], &links());
    let ended = end(ground.watched(program).env("FAKE_QUIET", "1"));
    assert_eq!(ended.code, 42, "{ended:?}");
    let trace = ground.trace();
    let expected = [
        (("comm", "HcclAllReduce"), 1),
        (("kernel", "aclrtLaunchKernel"), 1),
        (("kernel", "rtKernelLaunch"), 1),
    ];
    assert_eq!(trace.counts(), BTreeMap::from(expected));
}
