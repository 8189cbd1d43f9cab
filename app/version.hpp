#pragma once

#include <string>

namespace tandem::app {

/// Version, the CPU features that matter here, and whether CUDA is compiled in; no newline at the end.
std::string version_text();

}  // namespace tandem::app
