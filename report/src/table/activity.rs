//! Activities of a process that a device can wait for.

named_enum! {
    /// An activity of a process that a device can wait for. The names of spans identify it.
    pub Activity {
        /// The engine chooses what runs next.
        Schedule = "schedule",
        /// The engine hands a batch to its workers, or waits for them.
        Dispatch = "dispatch",
        /// The engine processes the output of its workers.
        Output = "output",
        /// A worker runs a step.
        Step = "step",
        /// A worker samples tokens, or copies them back.
        Sample = "sample",
        /// Keys and values are moved between hosts or caches.
        KvTransfer = "kv_transfer",
        /// Python collects garbage.
        Gc = "gc",
        /// The workers have a batch that the engine does not wait for. It is async work, from the hand-over to the
        /// processing of its output.
        Batch = "batch",
    }
}

impl Activity {
    /// Returns the activity of a span with this name. The names come from vLLM's plugin, SGLang's hooks and
    /// pypto-serving.
    pub(crate) fn from_name(name: &str) -> Option<Activity> {
        let (owner, call) = name
            .rsplit_once(['.', ':'])
            .map_or(("", name), |(owner, call)| (owner, call.trim_start()));
        let is_engine = owner == "executor";
        match call {
            "schedule" | "get_next_batch_to_run" => Some(Activity::Schedule),
            "execute_model" | "sample_tokens" if is_engine => Some(Activity::Dispatch),
            "queue_worker_step" | "wait_worker_output" => Some(Activity::Dispatch),
            "update_from_output"
            | "process_step_output"
            | "process_batch_result"
            | "decode_outputs"
            | "process_outputs" => Some(Activity::Output),
            "execute_model" | "execute_step" | "run_batch" => Some(Activity::Step),
            "sample_tokens" | "sample" | "enqueue_output" => Some(Activity::Sample),
            "start_load_kv" | "wait_for_layer_load" | "wait_for_save" => Some(Activity::KvTransfer),
            _ if name == "batch" => Some(Activity::Batch),
            _ if name.contains("kv_transfer") => Some(Activity::KvTransfer),
            _ if name == "gc" || owner == "gc" => Some(Activity::Gc),
            _ => None,
        }
    }

    /// Returns true if only the worker of a device does this for it. Its engine may do the same for another device.
    pub(crate) fn is_of_worker(self) -> bool {
        matches!(self, Activity::Step | Activity::Sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_recognized_by_name() {
        let expected = [
            ("scheduler.schedule", Some(Activity::Schedule)),
            ("executor.execute_model", Some(Activity::Dispatch)),
            ("WorkerWrapperBase.execute_model", Some(Activity::Step)),
            ("gpu_model_runner: sample", Some(Activity::Sample)),
            ("Scheduler.run_batch", Some(Activity::Step)),
            ("gc.collect", Some(Activity::Gc)),
            ("gcd", None),
            ("batch", Some(Activity::Batch)),
            ("executor.batch", None),
            ("step", None),
        ];
        for (name, activity) in expected {
            assert_eq!(Activity::from_name(name), activity, "{name}");
        }
    }
}
