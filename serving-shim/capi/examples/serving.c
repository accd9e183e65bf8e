/* A small serving engine: a scheduler that batches three requests, and a worker process that executes its steps.
 *
 *   cc serving.c $(pkg-config --cflags --libs sa_profile) -o serving
 *   SA_PROFILE_DIR=profile_out ./serving && trace-merge profile_out
 */
#include <sa_profile.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define E2E SA_PROFILE_LEVEL_E2E
#define KERNEL SA_PROFILE_LEVEL_KERNEL

enum { REQUESTS = 3, LAYERS = 4 };

/* A step, as the scheduler sends it to the worker. */
struct step {
  uint64_t number;
  int batch;
};

static void launch_matmul(int layer, int batch) {
  sa_profile_span_t kernel = sa_profile_span_begin(KERNEL, "kernel", "matmul");
  usleep(200);
  if (sa_profile_span_is_recording(kernel)) { /* args that are expensive to compute */
    const int64_t shape[] = {batch, 4096};
    sa_profile_span_args(kernel, SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", layer), sa_profile_arg_ints("shape", shape, 2)));
  }
  sa_profile_span_end(kernel);
}

static void execute(struct step step) {
  sa_profile_span_t span = sa_profile_span_begin(E2E, "worker", "Worker.execute");
  sa_profile_flow_global(E2E, SA_PROFILE_FLOW_END, NULL, "dispatch", step.number);
  for (int layer = 0; layer < LAYERS; layer++) launch_matmul(layer, step.batch);
  sa_profile_span_arg_int(span, "batch", step.batch);
  sa_profile_span_end(span);
}

/* Runs the worker, a forked child that records into its own fragment. */
static void work(int orders, int results) {
  sa_profile_process_set_name("worker-0");
  struct step step;
  while (read(orders, &step, sizeof step) == sizeof step) {
    execute(step);
    if (write(results, "", 1) != 1) break;
  }
}

static int run_step(struct step step, int orders, int results) {
  char done;
  sa_profile_span_t span = sa_profile_span_begin_args(E2E, "engine", "Scheduler.step", SA_PROFILE_ARGS(SA_PROFILE_ARG("batch", step.batch)));
  sa_profile_flow_global(E2E, SA_PROFILE_FLOW_START, NULL, "dispatch", step.number);
  const int ok = write(orders, &step, sizeof step) == sizeof step && read(results, &done, 1) == 1;
  sa_profile_span_end(span);
  return ok;
}

static void count_requests(int running) {
  sa_profile_counter(E2E, "requests", SA_PROFILE_ARGS(SA_PROFILE_ARG("running", running), SA_PROFILE_ARG("finished", REQUESTS - running)));
}

static void schedule(int orders, int results) {
  /* Requests overlap, so they cannot be spans of a thread, which nest. Async spans may overlap. */
  sa_profile_async_span_t requests[REQUESTS];
  for (int at = 0; at < REQUESTS; at++) {
    char id[16];
    snprintf(id, sizeof id, "cmpl-%d", at);
    requests[at] = sa_profile_async_span_begin_args(E2E, "serving", "request", SA_PROFILE_ARGS(SA_PROFILE_ARG("request_id", id)));
  }
  for (int running = REQUESTS; running > 0; running--) {
    count_requests(running);
    const struct step step = {(uint64_t)(REQUESTS - running), running};
    if (!run_step(step, orders, results)) exit(EXIT_FAILURE);
    sa_profile_async_span_arg_int(requests[running - 1], "tokens", REQUESTS - running + 1);
    sa_profile_async_span_end(requests[running - 1]);
  }
  count_requests(0);
}

int main(void) {
  sa_profile_init();
  sa_profile_process_set_name("engine-core");
  int orders[2], results[2];
  if (pipe(orders) != 0 || pipe(results) != 0) return EXIT_FAILURE;
  const pid_t worker = fork();
  if (worker < 0) return EXIT_FAILURE;
  if (worker == 0) {
    close(orders[1]);
    work(orders[0], results[1]);
    return EXIT_SUCCESS;
  }
  schedule(orders[1], results[0]);
  close(orders[1]); /* the worker ends when its pipe is closed */
  int status = 0;
  return waitpid(worker, &status, 0) == worker && status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
