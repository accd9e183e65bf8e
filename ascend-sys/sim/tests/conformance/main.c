/* Checks one rule of the Ascend runtime, against whatever library it is linked to: conformance CASE. Exits 0 if the case holds. */
#include "check.h"

const char *current;

static const struct {
  const char *name;
  void (*run)(void);
} cases[] = {
    {"context", context}, {"init", init}, {"devices", devices}, {"listeners", listeners}, {"streams", streams}, {"crowd", crowd}, {"events", events},
    {"stream_waits", stream_waits}, {"stream_dropped", stream_dropped}, {"device_clock", device_clock}, {"elapsed", elapsed}, {"elapsed_wraps", elapsed_wraps},
    {"event_pool", event_pool}, {"kernels", kernels}, {"launches", launches}, {"memory", memory}, {"callbacks", callbacks},
    {"collectives", collectives}, {"capture", capture}, {"capture_broken", capture_broken}, {"capture_modes", capture_modes},
    {"capture_streams", capture_streams}, {"capture_dropped", capture_dropped}, {"replay", replay}, {"capture_unseen", capture_unseen}, {"task_group", task_group}, {"last_error", last_error}, {"last_task", last_task}, {"faults_of_calls",
    faults_of_calls}, {"fault_of_a_kernel", fault_of_a_kernel}, {"fault_of_a_device", fault_of_a_device}, {"slow_completion",
    slow_completion}, {"through_rt_never", through_rt_never}, {"through_rt_when_old", through_rt_when_old}, {"work", work}, {"mspti", mspti}, {"mspti_refused", mspti_refused},
    {"mspti_called_late", mspti_called_late}, {"mspti_without_a_buffer", mspti_without_a_buffer},
    {"forked", forked}, {"endless", endless}, {"speed", speed},
};

int main(int count_of_arguments, char **arguments) {
  current = count_of_arguments == 2 ? arguments[1] : "";
  for (size_t index = 0; index < sizeof cases / sizeof *cases; index++) {
    if (strcmp(cases[index].name, current) == 0) {
      cases[index].run();
      return 0;
    }
  }
  fprintf(stderr, "conformance: no case %s\n", current);
  return 2;
}
