#pragma once
/// The options of a host device, checked, with everything chosen that they leave open.

#include <cstdint>

#include "core/result.hpp"
#include "gpu/host/host_device.hpp"
#include "gpu/host/kv_cache.hpp"
#include "gpu/host/packed_matrix.hpp"
#include "model/model.hpp"

namespace tandem::gpu::host {

/// The options with every "0: choose" chosen.
struct settled_options {
  host_options asked;
  isa set = isa::portable;
  std::int32_t threads = 1;
  kv_format kv = kv_format::bf16;
  packing how = packing::native;
};

/// Errors: invalid_argument, unsupported; they name the option.
result<settled_options> settle(const host_options& options, const model::model& target);

}  // namespace tandem::gpu::host
