// What the fakes answer next.
#include "interface.h"
answer fake_answer;
