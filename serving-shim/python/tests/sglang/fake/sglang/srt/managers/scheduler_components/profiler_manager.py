from sglang.srt.managers.io_struct import ProfileReqOutput, ProfileReqType


class SchedulerProfilerManager:
    """Starts and stops a profiler that records nothing. It stops by itself after `num_steps` batches."""

    def __init__(self, get_forward_ct):
        self.get_forward_ct = get_forward_ct
        self.profile_in_progress = False
        self.profiler_start_forward_ct = self.profiler_target_forward_ct = None

    def _init_profile(
        self, output_dir, start_step, num_steps, activities, with_stack, record_shapes, profile_by_stage, profile_id,
        merge_profiles=False, profile_prefix="", detailed_annotations=False, profile_stages=None,
    ):  # fmt: skip
        if self.profile_in_progress:
            return ProfileReqOutput(success=False, message="Profiling is already in progress. Call /stop_profile first.")
        if start_step:
            self.profiler_start_forward_ct = max(start_step, self.get_forward_ct() + 1)
        first = self.profiler_start_forward_ct if start_step else self.get_forward_ct() + 1
        self.profiler_target_forward_ct = first + num_steps if num_steps else None
        return ProfileReqOutput(success=True, message="Succeeded")

    def _start_profile(self, stage=None):
        self.profile_in_progress = True
        return ProfileReqOutput(success=True, message="Succeeded")

    def _stop_profile(self, stage=None):
        if not self.profile_in_progress:
            return ProfileReqOutput(success=False, message="Profiling is not in progress. Call /start_profile first.")
        self.profile_in_progress = False
        self.profiler_start_forward_ct = self.profiler_target_forward_ct = None
        return ProfileReqOutput(success=True, message="Succeeded.")

    def _profile_batch_predicate(self, batch):
        if self.profiler_target_forward_ct and self.profiler_target_forward_ct <= self.get_forward_ct():
            self._stop_profile()
        if self.profiler_start_forward_ct and self.profiler_start_forward_ct == self.get_forward_ct():
            self._start_profile()

    def _profile(self, recv_req):
        if recv_req.req_type != ProfileReqType.START_PROFILE:
            return self._stop_profile()
        output = self._init_profile(
            recv_req.output_dir, recv_req.start_step, recv_req.num_steps, recv_req.activities, recv_req.with_stack,
            recv_req.record_shapes, recv_req.profile_by_stage, recv_req.profile_id, recv_req.merge_profiles, recv_req.profile_prefix,
        )  # fmt: skip
        return self._start_profile() if output.success and not recv_req.start_step else output
