import time

from sglang.srt.managers.communicator import FanOutCommunicator
from sglang.srt.managers.io_struct import ProfileReq, ProfileReqType
from sglang.srt.runtime_context import get_parallel


class TokenizerControlMixin:
    def init_communicators(self):
        self.profile_communicator = FanOutCommunicator(self._dispatch_to_scheduler, get_parallel().num_dp_ranks)

    async def start_profile(self, req=None):
        self.auto_create_handle_loop()
        req = req or ProfileReq()
        req.req_type = ProfileReqType.START_PROFILE
        req.profile_id = req.profile_id or str(time.time())
        return await self._execute_profile(req)

    async def stop_profile(self):
        self.auto_create_handle_loop()
        return await self._execute_profile(ProfileReq(req_type=ProfileReqType.STOP_PROFILE))

    async def _execute_profile(self, req):
        result = (await self.profile_communicator(req))[0]
        if not result.success:
            raise RuntimeError(result.message)
        return result
