/* Runs itself as a child program, which finds the run in the environment. */
#include <sa_profile.h>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void say(const char *who) {
  char id[256], directory[4096];
  CHECK(sa_profile_run_id(id, sizeof id) > 0 && sa_profile_directory(directory, sizeof directory) > 0);
  printf("%s %s %s\n", sa_profile_is_main() ? "main" : "worker", id, directory);
  fflush(stdout);
  sa_profile_instant(SA_PROFILE_LEVEL_E2E, "test", who, SA_PROFILE_NO_ARGS);
}

int main(int count, char **words) {
  if (count > 1) {
    CHECK(chdir("/") == 0);
    say("child program");
    return 0;
  }
  sa_profile_init();
  say("main program");
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execl("/proc/self/exe", words[0], "child", (char *)NULL);
    _exit(9);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
