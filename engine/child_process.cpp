#include "engine/child_process.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/assert.hpp"

namespace tandem::engine {

int run_child(const std::vector<std::string>& command) {
  TANDEM_ASSERT(!command.empty());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  // The child must hear Ctrl-C, also where our own threads have it blocked.
  posix_spawnattr_t attributes;
  sigset_t nothing_blocked;
  sigemptyset(&nothing_blocked);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &nothing_blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int failed = posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return kChildNotFound;
  int status = 0;
  // Interrupted waits go on: the terminal sends Ctrl-C to the child as well, which then ends.
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kChildNotFound;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tandem::engine
