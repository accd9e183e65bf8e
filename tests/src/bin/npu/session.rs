//! A device with streams, and the calls that a program makes on it.

use ascend_sys::types::{HcclComm, aclmdlRI, aclrtFuncHandle, aclrtStream};
use ascend_sys::{Acl, Hccl, Library};
use serving_shim::runtime::Graph;
use serving_shim::{Kind, Launch, hooks};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// A program's calls on one device.
pub(crate) struct Session {
    acl: Acl,
    hccl: Hccl,
    device: i32,
    streams: Vec<aclrtStream>,
    functions: HashMap<&'static str, aclrtFuncHandle>,
    timed: bool,
}

const KERNELS: [&str; 4] = ["matmul", "add", "paged_attention", "sim_add_one"];

/// Configuration of the profiler. The simulator ignores its contents.
static PROFILER: u8 = 0;

/// Calls a function of the runtime and returns its code.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let function = $functions.$name.expect(stringify!($name));
        // SAFETY: handles belong to the runtime and are alive. Pointers are null where that is allowed, and otherwise readable or writable for the call.
        unsafe { function($($argument),*) }
    }};
}

/// Calls a function that must succeed.
macro_rules! ok {
    ($functions:expr, $name:ident($($argument:expr),*)) => {
        assert_eq!(call!($functions, $name($($argument),*)), 0, stringify!($name))
    };
}

/// Returns true if an MSPTI client holds the devices' channels, so that no profiler can start.
pub(crate) fn is_mspti_taken(acl: &Acl) -> bool {
    let config = (&raw const PROFILER).cast();
    let is_taken = call!(acl.profiler, aclprofStart(config)) != 0;
    if !is_taken {
        ok!(acl.profiler, aclprofStop(config));
    }
    is_taken
}

/// Waits until MSPTI's records of finished work have been read, if MSPTI is used. They are read every 100 ms.
fn await_records() {
    let device = std::env::var("SA_PROFILE_DEVICE").unwrap_or_default();
    if device.contains("mspti") {
        std::thread::sleep(Duration::from_millis(400));
    }
}

/// Code of `aclInit` if another thread has called it before.
const REPEATED: i32 = 100_002;

impl Session {
    pub(crate) fn open(streams: u64) -> Session {
        Session::on(0, streams)
    }

    pub(crate) fn on(device: i32, streams: u64) -> Session {
        let library = Library::open_simulator().expect("the simulator");
        let mut session = Session {
            acl: Acl::load(&library),
            hccl: Hccl::load(&library),
            device,
            streams: Vec::new(),
            functions: HashMap::new(),
            timed: std::env::var_os("NPU_BARE").is_none(),
        };
        let code = call!(session.acl.init, aclInit(null()));
        assert!(code == 0 || code == REPEATED, "aclInit: {code}");
        session.set(streams);
        session
    }

    /// Returns the same session without timing.
    pub(crate) fn untimed(self) -> Session {
        Session {
            timed: false,
            ..self
        }
    }

    /// Sets the device, and creates the streams and kernels.
    pub(crate) fn set(&mut self, streams: u64) {
        self.enter();
        let stream = |_| {
            let mut stream = null_mut();
            ok!(self.acl.stream, aclrtCreateStream(&raw mut stream));
            stream
        };
        self.streams = (0..streams).map(stream).collect();
        let (mut binary, code) = (null_mut(), 0u64);
        let data = (&raw const code).cast::<c_void>();
        let kernels = &self.acl.kernel;
        ok!(
            kernels,
            aclrtBinaryLoadFromData(data, 8, null(), &raw mut binary)
        );
        for name in KERNELS {
            let text = CString::new(name).expect("no NUL");
            let mut function = null_mut();
            let naming = &self.acl.naming;
            ok!(
                naming,
                aclrtBinaryGetFunction(binary, text.as_ptr(), &raw mut function)
            );
            self.functions.insert(name, function);
        }
    }

    /// Launches a kernel into a stream and returns the runtime's code.
    pub(crate) fn launch(&self, name: &'static str, stream: u64, index: u64, args: &[u64]) -> i32 {
        let stream = self.stream(stream);
        let (data, bytes) = (args.as_ptr().cast::<c_void>(), size_of_val(args));
        let function = self.functions[name];
        let call = || {
            call!(
                self.acl.launch,
                aclrtLaunchKernel(function, 8, data, bytes, stream)
            )
        };
        if !self.timed {
            return call();
        }
        let mut timed = Launch::begin(stream, name, 8);
        timed.arg("index", index);
        let code = call();
        timed.end(code);
        code
    }

    fn stream(&self, number: u64) -> aclrtStream {
        self.streams[usize::try_from(number).expect("few streams")]
    }

    /// Makes a call of this kind the way an interposer sees it.
    fn hooked(&self, kind: Kind, stream: u64, name: &'static str, call: impl FnOnce() -> i32) {
        let call_info = hooks::InterceptedLaunch {
            kind,
            stream: self.stream(stream),
            grid: 0,
            bytes: 0,
        };
        let timed = self
            .timed
            .then(|| hooks::launch(&call_info, || name.into()));
        let code = call();
        if let Some(Some(timed)) = timed {
            timed.end(code);
        }
        assert_eq!(code, 0, "{name}");
    }

    /// Creates a communicator for this device alone.
    pub(crate) fn communicator(&self) -> HcclComm {
        let (mut device, mut comm) = (self.device, null_mut());
        let (devices, comms) = (&raw mut device, &raw mut comm);
        ok!(self.hccl.comm, HcclCommInitAll(1, devices, comms));
        comm
    }

    /// Launches a collective under an interposer.
    pub(crate) fn barrier(&self, comm: HcclComm, number: u64) {
        let (stream, collectives) = (self.stream(number), &self.hccl.collective);
        self.hooked(Kind::Collective, number, "HcclBarrier", || {
            call!(collectives, HcclBarrier(comm, stream))
        });
    }

    /// Sets the device for the calling thread.
    pub(crate) fn enter(&self) {
        ok!(self.acl.lifecycle, aclrtSetDevice(self.device));
    }

    /// Launches two kernels inside an outer launch that covers both.
    pub(crate) fn launch_in(&self, index: u64) {
        let mut outer = Launch::begin(self.stream(0), "outer", 1);
        outer.arg("index", 1_000_000 + index);
        let first = self.launch("matmul", 0, index, &[]);
        let second = self.launch("add", 0, 500_000 + index, &[]);
        outer.end(first | second);
    }

    pub(crate) fn synchronize(&self) -> i32 {
        let wait = |stream| call!(self.acl.synchronize, aclrtSynchronizeStream(stream));
        let codes = self.streams.iter().map(|stream| wait(*stream));
        codes.fold(0, |first, code| if first == 0 { code } else { first })
    }

    /// Resets the device.
    pub(crate) fn reset(&self) {
        if self.timed {
            serving_shim::flush(Duration::from_secs(5));
            await_records();
            hooks::before_reset(self.device);
        }
        let code = call!(self.acl.lifecycle, aclrtResetDevice(self.device));
        println!("reset {code}");
    }

    pub(crate) fn close(self) {
        self.reset();
        if self.timed {
            hooks::before_finalize();
        }
        println!("finalize {}", call!(self.acl.lifecycle, aclFinalize()));
    }

    /// Captures what `launches` launches into a stream. No hook sees the capture, as when a program looks these functions up with `dlsym`.
    pub(crate) fn capture(&self, stream: u64, launches: impl FnOnce()) -> aclmdlRI {
        let (stream, mut graph) = (self.stream(stream), null_mut());
        ok!(self.acl.graph, aclmdlRICaptureBegin(stream, 0));
        launches();
        ok!(self.acl.graph, aclmdlRICaptureEnd(stream, &raw mut graph));
        graph
    }

    /// Replays a graph without a hook.
    pub(crate) fn replay(&self, graph: aclmdlRI, stream: u64) -> i32 {
        call!(
            self.acl.graph,
            aclmdlRIExecuteAsync(graph, self.stream(stream))
        )
    }

    /// Captures like [`Session::capture`], but under an interposer.
    pub(crate) fn capture_timed(&self, stream: u64, launches: impl FnOnce()) -> aclmdlRI {
        if self.timed {
            hooks::capture_begin(self.stream(stream));
        }
        let graph = self.capture(stream, launches);
        if self.timed {
            hooks::capture_end(self.stream(stream), graph);
        }
        graph
    }

    /// Replays a graph under an interposer.
    pub(crate) fn replay_timed(&self, graph: aclmdlRI, stream: u64) {
        let kind = Kind::Graph(Graph(graph as usize));
        self.hooked(kind, stream, "replay", || self.replay(graph, stream));
    }

    /// Returns true if an MSPTI client holds the devices' channels.
    pub(crate) fn is_mspti_taken(&self) -> bool {
        is_mspti_taken(&self.acl)
    }

    /// Starts another profiler under an interposer.
    pub(crate) fn start_profiler(&self) {
        hooks::profiler_started("aclprof");
        ok!(
            self.acl.profiler,
            aclprofStart((&raw const PROFILER).cast())
        );
    }

    /// Stops that profiler.
    pub(crate) fn stop_profiler(&self) {
        ok!(self.acl.profiler, aclprofStop((&raw const PROFILER).cast()));
        hooks::profiler_stopped("aclprof");
    }

    /// Allocates a 32-bit number on the device, initially 0.
    pub(crate) fn number(&self) -> *mut i32 {
        let mut address = null_mut();
        ok!(self.acl.memory, aclrtMalloc(&raw mut address, 4, 0));
        ok!(self.acl.copy, aclrtMemset(address, 4, 0, 4));
        address.cast()
    }

    /// Reads the number.
    pub(crate) fn read(&self, number: *mut i32) -> i32 {
        let mut value = 0i32;
        let to = (&raw mut value).cast::<c_void>();
        ok!(self.acl.copy, aclrtMemcpy(to, 4, number.cast(), 4, 2));
        value
    }
}

// SAFETY: we use the runtime's handles only as numbers, and the runtime accepts calls from any thread.
unsafe impl Send for Session {}
// SAFETY: as above. A session does not change after it was opened.
unsafe impl Sync for Session {}
