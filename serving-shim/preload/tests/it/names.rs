//! What kernels are called in the trace, and that a call inside another one is a part of it.

use crate::ground::{Ground, end};

#[test]
fn kernels_have_the_names_they_were_asked_for_by() {
    let ground = Ground::with_fakes();
    let links = [Ground::links(), vec!["-lfake_answer".to_owned()]].concat();
    ground.program("naming", &["naming.c"], &links);
    let mut command = ground.recorded(ground.path("naming"));
    let ended = end(command.env("FAKE_QUIET", "1"));
    // Once for the handle that came without a name, once for the one that the runtime does not know.
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (42, "asked 2\n"),
        "{ended:?}"
    );
    let trace = ground.trace();
    let of = |name: &str| {
        let named: Vec<_> = trace
            .recorded()
            .filter(|event| event["name"] == name)
            .collect();
        let raw = named[0]["args"].get("kernel").map(ToString::to_string);
        (named.len(), raw.unwrap_or_default())
    };
    let hash = |before: &str, after: &str| format!("\"{before}_{after}\"");
    let mat_mul = hash("MatMulV2", "8f9d3c5e7a1b2d4f6081a2b3c4d5e6f7_1_mix_aic");
    let asked = hash("AskedFor", "0123456789abcdef0123456789abcdef_1");
    assert_eq!(of("MatMulV2"), (2, mat_mul), "also by the rt level");
    assert_eq!(of("Renamed"), (1, String::new()));
    assert_eq!(of("AskedFor"), (5, asked), "one of them refused");
    assert_eq!(
        of("aclrtLaunchKernel"),
        (4, String::new()),
        "kernels without a name"
    );
    assert_eq!(of("triton_poi_fused_add_0"), (2, String::new()));
    let paged = hash("PagedAttention", "0123456789abcdef");
    assert_eq!(of("PagedAttention"), (1, paged), "by its binary");
    assert_eq!(of("rtKernelLaunchWithHandleV2"), (1, String::new()));
    assert_eq!(trace.recorded().count(), 16, "{:?}", trace.counts());
}

#[test]
fn a_call_that_is_made_of_others_is_recorded_once() {
    let ground = Ground::with_fakes();
    ground.library("libascendcl.so", "old_acl.c", &["-l:libruntime.so"]);
    let links = [
        "-Wl,--no-as-needed",
        "-l:libascendcl.so",
        "-l:libruntime.so",
    ];
    ground.program("old", &["old_program.c"], &links);
    let mut command = ground.recorded(ground.path("old"));
    let ended = end(command.env("FAKE_QUIET", "1"));
    assert_eq!(ended.code, 42, "{ended:?}");
    let trace = ground.trace();
    let counts: Vec<_> = trace.counts().into_values().collect();
    assert_eq!(counts, [1, 1, 1], "{:?}", trace.counts());
    for name in ["aclrtLaunchKernel", "HcclAllReduce", "rtKernelLaunch"] {
        trace.only(name);
    }
}
