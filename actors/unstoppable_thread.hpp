#pragma once
/// Threads for calls that nobody can interrupt and nobody may have to wait for.

#include <functional>

namespace tandem {

/// Runs `work`, which must not throw and owns all that it uses, on a thread of its own with the given niceness. Throws
/// std::system_error where no thread is to be had.
void run_unstoppable(std::function<void()> work, int niceness);

/// To be called when such a thread is left alone: should one still run when the process ends, destructors of statics,
/// which it may use, are not run; output is flushed all the same, and the exit status stays.
void leave_unstoppable();

}  // namespace tandem
