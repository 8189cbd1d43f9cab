#pragma once
/// Everything one host device owns, shared by the device and its open streams.

#include <memory>

#include "gpu/device.hpp"
#include "gpu/host/compute_team.hpp"
#include "gpu/host/draft_head.hpp"
#include "gpu/host/draft_runner.hpp"
#include "gpu/host/head_runner.hpp"
#include "gpu/host/leader.hpp"
#include "gpu/host/model_executor.hpp"
#include "gpu/host/target_runner.hpp"

namespace tandem::gpu::host {

struct host_core {
  device_info info;
  std::unique_ptr<compute_team> team;
  std::unique_ptr<model_executor> target;
  std::unique_ptr<model_executor> draft;  ///< null without a draft model
  std::unique_ptr<draft_head> head;       ///< null without draft heads
  std::unique_ptr<target_runner> target_work;
  std::unique_ptr<draft_runner> draft_work;
  std::unique_ptr<head_runner> head_work;
  leader computing;  ///< last: its thread ends before what it uses
};

std::unique_ptr<target_stream> make_target_stream(std::shared_ptr<host_core> core);
std::unique_ptr<draft_stream> make_draft_stream(std::shared_ptr<host_core> core);
std::unique_ptr<draft_stream> make_head_stream(std::shared_ptr<host_core> core);

}  // namespace tandem::gpu::host
