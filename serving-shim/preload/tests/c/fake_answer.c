// The next answer of the fakes.
#include "interface.h"
answer fake_answer;
