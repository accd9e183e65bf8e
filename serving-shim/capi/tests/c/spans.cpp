// Uses the header in C++11.
#include <sa_profile.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

// Only pointers to strings are accepted as args.
template <class Value, class = void> struct IsArg : std::false_type {};
template <class Value> struct IsArg<Value, decltype(void(SA_PROFILE_ARG("k", std::declval<Value>())))> : std::true_type {};
static_assert(IsArg<char *&>() && IsArg<const char *>() && IsArg<const char (&)[8]>() && IsArg<bool>() && IsArg<std::nullptr_t>(), "");
static_assert(!IsArg<int *&>() && !IsArg<void (&)()>() && !IsArg<const volatile void *>() && !IsArg<char **>() && !IsArg<unsigned char *>(), "");

extern "C" const char *second_language(void);

static int evaluated;

int main() {
  if (std::strcmp(sa_profile_version(), SA_PROFILE_VERSION) != 0 || SA_PROFILE_VERSION_MAJOR != 0) return 3;
  sa_profile_init();
  second_language();
  const std::string text("a\0b", 3);
  {
    sa_profile::Span span(SA_PROFILE_LEVEL_E2E, "test", "cpp");
    if (!span.is_recording()) return 1;
    span.arg("i", -3);
    span.arg("u", 3u);
    span.arg("b", true);
    span.arg("d", 0.5f);
    span.arg("s", "text");
    span.arg("std", text);
    span.arg("last", 1L);
  }
  {
    sa_profile::Span span(SA_PROFILE_LEVEL_E2E, "test", "begun with args",
                          SA_PROFILE_ARGS(SA_PROFILE_ARG("layer", 7), SA_PROFILE_ARG("std", text)));
    span.arg("later", true);
  }
  {
    sa_profile::Span span(SA_PROFILE_LEVEL_E2E, "test", "begun with none", SA_PROFILE_NO_ARGS);
  }
  sa_profile_instant(SA_PROFILE_LEVEL_E2E, "test", "instant",
                     SA_PROFILE_ARGS(SA_PROFILE_ARG("evaluated", ++evaluated), SA_PROFILE_ARG("more", "x")));
  sa_profile_counter(SA_PROFILE_LEVEL_E2E, "counted", SA_PROFILE_ARGS(SA_PROFILE_ARG("running", 3LL)));
  sa_profile_instant(SA_PROFILE_LEVEL_E2E, "test", "none", SA_PROFILE_NO_ARGS);
  return evaluated == 1 ? 0 : 2;
}
