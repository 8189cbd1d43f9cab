#include "gpu/host/attention_body.hpp"

namespace tandem::gpu::host {

void attend_avx512(const attention_task& task) {
  attend(task);
}

}  // namespace tandem::gpu::host
