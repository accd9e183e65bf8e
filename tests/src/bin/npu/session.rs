//! A device with streams, and the calls a program makes.

use ascend_sys::types::{HcclComm, aclmdlRI, aclrtFuncHandle, aclrtStream};
use ascend_sys::{Acl, Hccl, Library};
use serving_shim::runtime::Graph;
use serving_shim::{Kind, Launch, hooks};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// The calls of a program that has one device.
pub(crate) struct Session {
    acl: Acl,
    hccl: Hccl,
    device: i32,
    pub(crate) streams: Vec<aclrtStream>,
    functions: HashMap<&'static str, aclrtFuncHandle>,
    timed: bool,
}

const KERNELS: [&str; 4] = ["matmul", "add", "paged_attention", "sim_add_one"];

/// What the profiler is configured with; the simulator does not look into it.
static PROFILER: u8 = 0;

/// Returns true if a client of MSPTI has the devices' channels, so that no profiler can start.
pub(crate) fn is_mspti_taken(acl: &Acl) -> bool {
    let start = acl.profiler.aclprofStart.expect("a start");
    // SAFETY: the configuration stays.
    if unsafe { start((&raw const PROFILER).cast()) } != 0 {
        return true;
    }
    let stop = acl.profiler.aclprofStop.expect("a stop");
    // SAFETY: as at its start.
    ok("aclprofStop", unsafe { stop((&raw const PROFILER).cast()) });
    false
}

/// Waits until MSPTI's records of what has run are read, if there are any: that is done every 100 ms.
pub(crate) fn await_records() {
    let device = std::env::var("SA_PROFILE_DEVICE").unwrap_or_default();
    if device.contains("mspti") {
        std::thread::sleep(Duration::from_millis(400));
    }
}

/// `aclInit` was called before, by another thread.
const REPEATED: i32 = 100_002;

fn ok(call: &str, code: i32) {
    assert_eq!(code, 0, "{call}");
}

impl Session {
    pub(crate) fn open(streams: usize) -> Session {
        let device = std::env::var("NPU_DEVICE").map_or(0, |text| text.parse().expect("a number"));
        Session::on(device, streams)
    }

    pub(crate) fn on(device: i32, streams: usize) -> Session {
        let library = Library::open_simulator().expect("the simulator");
        let mut session = Session {
            acl: Acl::load(&library),
            hccl: Hccl::load(&library),
            device,
            streams: Vec::new(),
            functions: HashMap::new(),
            timed: std::env::var_os("NPU_BARE").is_none(),
        };
        let init = session.acl.init.aclInit.expect("aclInit");
        // SAFETY: a null path asks for no configuration.
        let code = unsafe { init(null()) };
        assert!(code == 0 || code == REPEATED, "aclInit: {code}");
        session.set(streams);
        session
    }

    /// The same, and nothing of what it does is timed.
    pub(crate) fn untimed(self) -> Session {
        Session {
            timed: false,
            ..self
        }
    }

    /// Sets the device and makes streams.
    pub(crate) fn set(&mut self, streams: usize) {
        let set = self.acl.lifecycle.aclrtSetDevice.expect("aclrtSetDevice");
        // SAFETY: takes an integer.
        ok("aclrtSetDevice", unsafe { set(self.device) });
        let create = self
            .acl
            .stream
            .aclrtCreateStream
            .expect("aclrtCreateStream");
        self.streams = (0..streams)
            .map(|_| {
                let mut stream = null_mut();
                // SAFETY: `stream` is writable for the call.
                ok("aclrtCreateStream", unsafe { create(&raw mut stream) });
                stream
            })
            .collect();
        self.load();
    }

    fn load(&mut self) {
        let load = self.acl.kernel.aclrtBinaryLoadFromData.expect("a load");
        let find = self.acl.naming.aclrtBinaryGetFunction.expect("a find");
        let (mut binary, code) = (null_mut(), [0u8; 8]);
        // SAFETY: `code` is readable for its length, `binary` writable for the call; there are no options.
        ok("aclrtBinaryLoadFromData", unsafe {
            load(
                code.as_ptr().cast::<c_void>(),
                code.len(),
                null(),
                &raw mut binary,
            )
        });
        for name in KERNELS {
            let text = CString::new(name).expect("no NUL");
            let mut function = null_mut();
            // SAFETY: `text` is a C string, `function` writable for the call.
            ok("aclrtBinaryGetFunction", unsafe {
                find(binary, text.as_ptr(), &raw mut function)
            });
            self.functions.insert(name, function);
        }
    }

    /// Launches a kernel into a stream; the runtime's code.
    pub(crate) fn launch(
        &self,
        name: &'static str,
        stream: usize,
        index: u64,
        args: &[u64],
    ) -> i32 {
        let stream = self.streams[stream];
        let launch = self.acl.launch.aclrtLaunchKernel.expect("a launch");
        let function = self.functions[name];
        let (data, bytes) = (args.as_ptr().cast::<c_void>(), size_of_val(args));
        // SAFETY: handles are the runtime's, `args` is readable for its length.
        let call = || unsafe { launch(function, 8, data, bytes, stream) };
        if !self.timed {
            return call();
        }
        let mut timed = Launch::begin(stream, name, 8);
        timed.arg("index", index);
        let code = call();
        timed.end(code);
        code
    }

    /// A communicator of this device alone.
    pub(crate) fn communicator(&self) -> HcclComm {
        let make = self.hccl.comm.HcclCommInitAll.expect("a communicator");
        let (mut device, mut comm) = (self.device, null_mut());
        // SAFETY: one device is named, and there is room for one communicator.
        ok("HcclCommInitAll", unsafe {
            make(1, &raw mut device, &raw mut comm)
        });
        comm
    }

    /// Launches a collective before an interposer's eyes.
    pub(crate) fn barrier(&self, comm: HcclComm, stream: usize) {
        let barrier = self.hccl.collective.HcclBarrier.expect("a barrier");
        let seen = hooks::Seen {
            kind: Kind::Collective,
            stream: self.streams[stream],
            grid: 0,
            bytes: 0,
        };
        let timed = self
            .timed
            .then(|| hooks::launch(&seen, || "HcclBarrier".into()));
        // SAFETY: both are the runtime's, and alive.
        let code = unsafe { barrier(comm, self.streams[stream]) };
        if let Some(Some(timed)) = timed {
            timed.end(code);
        }
        ok("HcclBarrier", code);
    }

    /// Gives the calling thread the device.
    pub(crate) fn enter(&self) {
        let set = self.acl.lifecycle.aclrtSetDevice.expect("aclrtSetDevice");
        // SAFETY: takes an integer.
        ok("aclrtSetDevice", unsafe { set(self.device) });
    }

    /// Launches one kernel inside the timing of two.
    pub(crate) fn launch_in(&self, index: u64) {
        let stream = self.streams[0];
        let mut outer = Launch::begin(stream, "outer", 1);
        outer.arg("index", 1_000_000 + index);
        let first = self.launch("matmul", 0, index, &[]);
        let second = self.launch("add", 0, 500_000 + index, &[]);
        outer.end(first | second);
    }

    pub(crate) fn synchronize(&self) -> i32 {
        let wait = self.acl.synchronize.aclrtSynchronizeStream.expect("a wait");
        // SAFETY: the streams are the runtime's, and alive.
        let codes = self.streams.iter().map(|stream| unsafe { wait(*stream) });
        codes.fold(0, |first, code| if first == 0 { code } else { first })
    }

    /// Takes the device down.
    pub(crate) fn reset(&self) {
        if self.timed {
            serving_shim::flush(Duration::from_secs(5));
            await_records();
            serving_shim::hooks::before_reset(self.device);
        }
        let reset = self.acl.lifecycle.aclrtResetDevice.expect("a reset");
        // SAFETY: takes an integer.
        let code = unsafe { reset(self.device) };
        println!("reset {code}");
    }

    pub(crate) fn close(self) {
        self.reset();
        if self.timed {
            serving_shim::hooks::before_finalize();
        }
        let finalize = self.acl.lifecycle.aclFinalize.expect("a finalize");
        // SAFETY: takes nothing.
        let code = unsafe { finalize() };
        println!("finalize {code}");
    }

    /// Captures what is launched meanwhile into a stream. No hook sees it, as where a program gets these functions by their names.
    pub(crate) fn capture(&self, stream: usize, launches: impl FnOnce()) -> aclmdlRI {
        let stream = self.streams[stream];
        let begin = self.acl.graph.aclmdlRICaptureBegin.expect("a begin");
        let end = self.acl.graph.aclmdlRICaptureEnd.expect("an end");
        // SAFETY: the stream is the runtime's, and alive.
        println!("capture begin {}", unsafe { begin(stream, 0) });
        launches();
        let mut graph = null_mut();
        // SAFETY: `graph` is writable for the call.
        println!("capture end {}", unsafe { end(stream, &raw mut graph) });
        graph
    }

    /// Replays a graph.
    pub(crate) fn replay(&self, graph: aclmdlRI, stream: usize) -> i32 {
        let execute = self.acl.graph.aclmdlRIExecuteAsync.expect("a replay");
        // SAFETY: graph and stream are the runtime's, and alive.
        unsafe { execute(graph, self.streams[stream]) }
    }

    /// Captures as [`Session::capture`] does, and an interposer sees it.
    pub(crate) fn capture_seen(&self, stream: usize, launches: impl FnOnce()) -> aclmdlRI {
        if self.timed {
            hooks::capture_begin(self.streams[stream]);
        }
        let graph = self.capture(stream, launches);
        if self.timed {
            hooks::capture_end(self.streams[stream], graph);
        }
        graph
    }

    /// Replays a graph before an interposer's eyes.
    pub(crate) fn replay_timed(&self, graph: aclmdlRI, stream: usize) {
        let seen = hooks::Seen {
            kind: Kind::Graph(Graph(graph as usize)),
            stream: self.streams[stream],
            grid: 0,
            bytes: 0,
        };
        let timed = self.timed.then(|| hooks::launch(&seen, || "replay".into()));
        let code = self.replay(graph, stream);
        if let Some(Some(timed)) = timed {
            timed.end(code);
        }
        assert_eq!(code, 0, "a replay");
    }

    /// Returns true if a client of MSPTI has the devices' channels.
    pub(crate) fn is_mspti_taken(&self) -> bool {
        is_mspti_taken(&self.acl)
    }

    /// Starts another profiler before an interposer's eyes.
    pub(crate) fn start_profiler(&self) {
        hooks::profiler_started("aclprof");
        let start = self.acl.profiler.aclprofStart.expect("a start");
        // SAFETY: the configuration stays.
        ok("aclprofStart", unsafe {
            start((&raw const PROFILER).cast())
        });
    }

    /// Stops it.
    pub(crate) fn stop_profiler(&self) {
        let stop = self.acl.profiler.aclprofStop.expect("a stop");
        // SAFETY: as at its start.
        ok("aclprofStop", unsafe { stop((&raw const PROFILER).cast()) });
        hooks::profiler_stopped("aclprof");
    }

    /// A 32-bit number on the device, 0 at first.
    pub(crate) fn number(&self) -> *mut i32 {
        let allocate = self.acl.memory.aclrtMalloc.expect("aclrtMalloc");
        let mut address = null_mut();
        // SAFETY: `address` is writable for the call.
        ok("aclrtMalloc", unsafe { allocate(&raw mut address, 4, 0) });
        let set = self.acl.copy.aclrtMemset.expect("aclrtMemset");
        // SAFETY: four bytes were allocated.
        ok("aclrtMemset", unsafe { set(address, 4, 0, 4) });
        address.cast()
    }

    /// What the number is by now.
    pub(crate) fn read(&self, number: *mut i32) -> i32 {
        let copy = self.acl.copy.aclrtMemcpy.expect("aclrtMemcpy");
        let mut value = 0i32;
        let to = (&raw mut value).cast::<c_void>();
        // SAFETY: both sides have four bytes.
        ok("aclrtMemcpy", unsafe { copy(to, 4, number.cast(), 4, 2) });
        value
    }
}

// SAFETY: handles of the runtime are numbers to us, and it takes calls from any thread.
unsafe impl Send for Session {}
// SAFETY: as above; nothing of a session changes after it was opened.
unsafe impl Sync for Session {}
