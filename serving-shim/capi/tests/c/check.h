/* Prints the failed condition with its file and line, and ends the program. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                          \
    }                                                                   \
  } while (0)
