#include "gpu/host/kernels/amx_tiles.hpp"

namespace tandem::gpu::host {

tile_shapes& loaded_tile_shapes() {
  thread_local tile_shapes shapes = {.palette = 0};
  return shapes;
}

}  // namespace tandem::gpu::host
