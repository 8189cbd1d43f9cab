#pragma once
/// Assertions that stay on. A failed one is a bug in tandem, never the user's fault: print where, then abort.

#include <cstdio>
#include <cstdlib>

namespace tandem {

[[noreturn]] inline void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "tandem: bug: assertion failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace tandem

#define TANDEM_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::tandem::assertion_failed(#expression, __FILE__, __LINE__))
