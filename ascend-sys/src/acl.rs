//! The ACL runtime (libacl_rt.so, libascendcl.so), by group.

groups! {
    /// All functions of ACL, by group.
    Acl {
        /// Initialisation and versions.
        init Init for_each_init;
        /// Functions that begin and end the use of devices, contexts and streams.
        lifecycle Lifecycle for_each_lifecycle;
        /// Devices.
        device Device for_each_device;
        /// Contexts.
        context Context for_each_context;
        /// Streams.
        stream Stream for_each_stream;
        /// The last error and the last task of the calling thread.
        thread Thread for_each_thread;
        /// Waits of the host for the device.
        synchronize Synchronize for_each_synchronize;
        /// Events.
        event Event for_each_event;
        /// The function that makes a stream wait for a function on the host.
        host_func HostFunc for_each_host_func;
        /// Binaries and function handles.
        kernel Kernel for_each_kernel;
        /// Functions that reveal the names of kernels.
        naming Naming for_each_naming;
        /// Kernel launches.
        launch Launch for_each_launch;
        /// Graphs: capture and replay.
        graph Graph for_each_graph;
        /// Graphs: queries.
        graph_info GraphInfo for_each_graph_info;
        /// Offline models and single operators.
        model Model for_each_model;
        /// Copies.
        copy Copy for_each_copy;
        /// Memory.
        memory Memory for_each_memory;
        /// The vendor's profiler, in libmsprofiler.so.
        profiler Profiler for_each_profiler;
    }
}
