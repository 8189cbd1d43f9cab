#pragma once
/// Log lines go to standard error, as text or as one JSON object a line.

#include "config/options.hpp"

namespace tandem::app {

void set_up_logging(const config::logging_options& options);

}  // namespace tandem::app
