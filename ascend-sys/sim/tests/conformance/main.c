/* Checks one rule of the Ascend runtime with the library to which it is linked: conformance CASE. Exits with 0 if the rule holds. */
#include "check.h"

const char *current;

static struct {
  const char *name;
  void (*run)(void);
} cases[64];
static size_t count;

void add_case(const char *name, void (*run)(void)) {
  cases[count].name = name;
  cases[count++].run = run;
}

int main(int argc, char **argv) {
  current = argc > 1 ? argv[1] : "";
  for (size_t at = 0; at < count; at++) {
    if (strcmp(cases[at].name, current) == 0) {
      cases[at].run();
      return 0;
    }
  }
  fprintf(stderr, "no case %s\n", current);
  return 2;
}
