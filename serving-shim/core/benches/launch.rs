//! Measures the time that timing adds to a launch in a process that records. The kernels of the simulated runtime take no time here.
//!
//! `cargo bench -p serving-shim [-- --quick]` prints `RESULT <case> <ns> <ratio>`: the added time of a launch on the launching thread, compared with the same untimed
//! launch, in ns and as a multiple of two clock reads. All cases run in turn in the same rounds, and the median round counts. `CPU <case> <ns>` is the same in CPU
//! time of the launching thread, on which other programs on a busy machine have little influence. `CALLS <case> <number>` is the number of added calls of the runtime.
#![expect(unsafe_code, reason = "calls the simulated runtime's functions")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use ascend_sys::types::{aclrtFuncHandle, aclrtStream};
use ascend_sys::{Acl, Library};
use measure::clock::{floor_ns, thread_cpu_ns, wall_ns};
use measure::quantile::median;
use sa_recorder::Recorder;
use serving_shim::hooks::{self, InterceptedLaunch};
use serving_shim::{Kind, Launch, flush};
use std::ffi::c_void;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// Environment variable that is set in the measuring process.
const CHILD: &str = "LAUNCH_BENCH_CHILD";
/// Number of launches of a case in a round, which is less than the number of event pairs.
const LAUNCHES: u64 = 2000;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 20 } else { 200 };
    if std::env::var_os(CHILD).is_some() {
        return measured(rounds);
    }
    let scratch = measure::scratch().expect("a scratch directory");
    let program = std::env::current_exe().expect("the path of this program");
    let simulator = program.with_file_name("libascendcl.so");
    let status = Command::new(&program)
        .args(quick.then_some("--quick"))
        .env(CHILD, "1")
        .env("SA_PROFILE_DIR", scratch.path())
        .env("SA_PROFILE_DEVICE", "sim")
        .env("SA_PROFILE_SIM_LIBRARY", simulator)
        .env("ASCEND_SIM_KERNEL_US", "0")
        .status()
        .expect("the measuring process");
    assert!(status.success(), "{status}");
}

/// A device with one stream and one kernel.
struct Npu {
    library: Library,
    acl: Acl,
    stream: aclrtStream,
    function: aclrtFuncHandle,
}

impl Npu {
    fn open() -> Npu {
        let library = Library::open_simulator().expect("the simulator");
        let acl = Acl::load(&library);
        let (mut stream, mut binary, mut function) = (null_mut(), null_mut(), null_mut());
        let init = acl.init.aclInit.expect("aclInit");
        // SAFETY: a null path means no configuration.
        assert_eq!(unsafe { init(null()) }, 0);
        let set = acl.lifecycle.aclrtSetDevice.expect("aclrtSetDevice");
        // SAFETY: the argument is an integer.
        assert_eq!(unsafe { set(0) }, 0);
        let create = acl.stream.aclrtCreateStream.expect("aclrtCreateStream");
        // SAFETY: `stream` is writable during the call.
        assert_eq!(unsafe { create(&raw mut stream) }, 0);
        let load = acl.kernel.aclrtBinaryLoadFromData.expect("a load");
        let code = [0u8; 8];
        let (data, bytes) = (code.as_ptr().cast(), code.len());
        // SAFETY: `code` is readable for its length, and `binary` is writable during the call.
        assert_eq!(unsafe { load(data, bytes, null(), &raw mut binary) }, 0);
        let find = acl.naming.aclrtBinaryGetFunction.expect("a find");
        let name = c"matmul".as_ptr();
        // SAFETY: the name is a C string, and `function` is writable during the call.
        assert_eq!(unsafe { find(binary, name, &raw mut function) }, 0);
        Npu {
            library,
            acl,
            stream,
            function,
        }
    }

    fn launch(&self) -> i32 {
        let launch = self.acl.launch.aclrtLaunchKernel.expect("a launch");
        // SAFETY: the handles are valid handles of the runtime, and there are no arguments.
        unsafe { launch(self.function, 8, null::<c_void>(), 0, self.stream) }
    }

    fn calls(&self) -> u64 {
        self.library.simulated_calls().expect("the simulator")
    }

    /// Waits until all kernels have run and have their slices.
    fn settle(&self) {
        let wait = self.acl.synchronize.aclrtSynchronizeStream.expect("a wait");
        // SAFETY: the stream is a valid handle of the runtime.
        assert_eq!(unsafe { wait(self.stream) }, 0);
        assert!(
            flush(Duration::from_secs(10)),
            "launches have no slices after ten seconds"
        );
    }
}

fn measured(rounds: usize) {
    Recorder::init();
    let npu = Npu::open();
    let timed = || {
        let launch = Launch::begin(npu.stream, "matmul", 8);
        launch.end(npu.launch());
    };
    let seen = InterceptedLaunch {
        kind: Kind::Kernel,
        stream: npu.stream,
        grid: 8,
        bytes: 0,
    };
    let sampled = || {
        let launch = hooks::launch(&seen, || "matmul".into());
        let code = npu.launch();
        if let Some(launch) = launch {
            launch.end(code);
        }
    };
    let bare = || {
        npu.launch();
    };
    let cases: [&dyn Fn(); 3] = [&bare, &timed, &sampled];
    let mut samples = [const { (Vec::new(), Vec::new()) }; 3];
    let mut calls = [0; 3];
    let mut floors = Vec::new();
    for _ in 0..rounds {
        floors.push(floor_ns(20_000));
        for ((case, samples), calls) in cases.iter().zip(&mut samples).zip(&mut calls) {
            let before = npu.calls();
            let (start, start_cpu) = (wall_ns(), thread_cpu_ns());
            (0..LAUNCHES).for_each(|_| case());
            let each = |ns: u64| ns as f64 / LAUNCHES as f64;
            samples.0.push(each(wall_ns() - start));
            samples.1.push(each(thread_cpu_ns() - start_cpu));
            *calls = npu.calls() - before; // of the last round, in which all events already exist
            npu.settle();
        }
    }
    let floor = median(&floors);
    let [bare, timed, sampled] = samples.map(|(wall, cpu)| (median(&wall), median(&cpu)));
    println!(
        "two clock reads {floor:.1} ns, a bare launch {:.0} ns",
        bare.0
    );
    let cases = [
        ("launch_timed_sim", timed, calls[1]),
        ("launch_sampled_sim", sampled, calls[2]),
    ];
    for (name, (wall, cpu), calls) in cases {
        let added = wall - bare.0;
        println!("RESULT {name} {added:.0} {:.2}", added / floor);
        println!("CPU {name} {:.0}", cpu - bare.1);
        println!("CALLS {name} {:.2}", calls as f64 / LAUNCHES as f64 - 1.0);
    }
}
