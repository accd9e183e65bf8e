//! Python that calls the vendor's libraries through `ctypes`, as vLLM-Ascend's pyhccl does: it looks each function up by its library's handle.

use crate::ground::{Ended, Ground, beside, end, skip};
use crate::trace::Trace;
use std::path::{Path, PathBuf};

/// All sent and received through `ctypes`; it prints what came back.
const SCRIPT: &str = "
import ctypes, sys
from ctypes import byref, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

acl = ctypes.CDLL('libascendcl.so')
hccl = ctypes.CDLL('libhccl.so')

def of(library, name, *types):
    function = getattr(library, name)
    function.restype, function.argtypes = c_int, types
    def checked(*arguments):
        code = function(*arguments)
        if code:
            sys.exit(f'{name}: {code}')
    return checked

of(acl, 'aclInit', c_void_p)(None)
of(acl, 'aclrtSetDevice', c_int32)(0)
stream, device, comm = c_void_p(), c_void_p(), c_void_p()
of(acl, 'aclrtCreateStream', c_void_p)(byref(stream))
of(acl, 'aclrtMalloc', c_void_p, c_size_t, c_int)(byref(device), 32, 0)
root = (ctypes.c_byte * 4108)()
of(hccl, 'HcclGetRootInfo', c_void_p)(byref(root))
of(hccl, 'HcclCommInitRootInfo', c_int, c_void_p, c_int, c_void_p)(1, byref(root), 0, byref(comm))

copy = of(acl, 'aclrtMemcpyAsync', c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p)
batch = of(acl, 'aclrtMemcpyBatchAsync', *[c_void_p] * 4, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)
reduce = of(hccl, 'HcclAllReduce', c_void_p, c_void_p, c_uint64, c_int, c_int, c_void_p, c_void_p)
broadcast = of(hccl, 'HcclBroadcast', c_void_p, c_uint64, c_int, c_uint32, c_void_p, c_void_p)
sent, received = (c_int32 * 4)(1, 2, 3, 4), (c_int32 * 4)()
receives = device.value + 16
copy(device, 16, sent, 16, 1, stream)
for n in range(5):
    reduce(device, receives, 4, 2, 0, comm, stream)
broadcast(receives, 4, 2, 0, comm, stream)
place = ctypes.addressof(received)
to, origin = (c_void_p * 2)(place, place + 4), (c_void_p * 2)(receives, receives + 4)
room, sizes, failed = (c_size_t * 2)(16, 12), (c_size_t * 2)(4, 12), c_size_t()
batch(to, room, origin, sizes, 2, None, None, 0, byref(failed), stream)
of(acl, 'aclrtSynchronizeStream', c_void_p)(stream)
print(*received)
of(hccl, 'HcclCommDestroy', c_void_p)(comm)
of(acl, 'aclrtResetDevice', c_int32)(0)
of(acl, 'aclFinalize')()
sys.exit(42)
";

fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    programs.find(|program| program.exists())
}

/// The script's end; recorded, on the simulated runtime, if that is wanted.
fn run(ground: &Ground, python: &Path, recorded: bool) -> Ended {
    let mut command = match recorded {
        true => ground.recorded(python),
        false => ground.command(python),
    };
    let libraries = ground.path(".");
    command
        .args(["-S", "-c", SCRIPT])
        .env("LD_LIBRARY_PATH", libraries);
    if recorded {
        command.env("SA_PROFILE_DEVICE", "sim");
        command.env("SA_PROFILE_SIM_LIBRARY", ground.path("libascendcl.so"));
    }
    end(&mut command)
}

/// The times on the device of the slices by this name.
fn timed<'trace>(trace: &'trace Trace, name: &str) -> Vec<&'trace serde_json::Value> {
    let named = trace.recorded().filter(|event| event["name"] == name);
    named
        .filter(|event| !event["args"]["device_wall_us"].is_null())
        .collect()
}

#[test]
fn launches_through_ctypes_are_recorded_and_timed() {
    let Some(python) = python() else {
        return skip("launches_through_ctypes", "python3 is not installed");
    };
    let ground = Ground::with_simulator();
    let library = beside("libascendcl.so");
    std::os::unix::fs::symlink(library, ground.path("libhccl.so")).unwrap();
    let plain = run(&ground, &python, false);
    let said = (plain.code, &*plain.stdout, &*plain.stderr);
    assert_eq!(said, (42, "1 2 3 4\n", ""));
    assert_eq!(run(&ground, &python, true), plain);
    let trace = ground.trace();
    for (name, count, bytes) in [
        ("HcclAllReduce", 5, 16),
        ("HcclBroadcast", 1, 16),
        ("aclrtMemcpyAsync", 1, 16),
        ("aclrtMemcpyBatchAsync", 1, 16),
    ] {
        let slices = timed(&trace, name);
        assert_eq!(slices.len(), count, "{name}");
        for slice in slices {
            assert_eq!(slice["args"]["bytes"], bytes, "{name}");
        }
    }
    assert_eq!(trace.count("aclrtSynchronizeStream"), 1);
}
