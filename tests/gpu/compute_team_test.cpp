#include "gpu/host/compute_team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gpu/host/host_resources.hpp"

namespace tandem::gpu::host {
namespace {

void expect_each_once(compute_team& team, std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  team.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, std::int32_t thread) {
    EXPECT_LT(begin, end);
    EXPECT_LT(thread, team.threads());
    for (auto i = begin; i < end; ++i) seen[static_cast<std::size_t>(i)].fetch_add(1);
  });
  for (const auto& each : seen) EXPECT_EQ(each.load(), 1);
}

TEST(compute_team, covers_every_index_exactly_once_for_any_count_grain_and_number_of_threads) {
  for (const std::int32_t threads : {1, 2, 3, 8}) {  // 8: more than the cores of most test machines
    compute_team team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 7, 64, 1000})
      for (const std::int64_t grain : {1, 3, 64}) expect_each_once(team, count, grain);
  }
}

TEST(compute_team, runs_many_short_jobs_one_after_the_other_without_mixing_them_up) {
  compute_team team(4);
  for (std::int64_t job = 1; job <= 20'000; ++job) {
    std::atomic<std::int64_t> sum{0};
    team.parallel_for(16, 1, [&](std::int64_t begin, std::int64_t end, std::int32_t) { sum += (end - begin) * job; });
    ASSERT_EQ(sum.load(), 16 * job);
  }
}

TEST(compute_team, wakes_helpers_that_fell_asleep) {
  compute_team team(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    expect_each_once(team, 100, 1);
  }
}

TEST(compute_team, hands_an_exception_of_any_thread_to_the_leader_and_goes_on) {
  compute_team team(3);
  const auto fail_at_50 = [](std::int64_t begin, std::int64_t end, std::int32_t) {
    if (begin <= 50 && 50 < end) throw std::runtime_error("chunk");
  };
  EXPECT_THROW(team.parallel_for(100, 1, fail_at_50), std::runtime_error);
  expect_each_once(team, 100, 1);
}

TEST(host_resources, grant_at_least_one_core_and_some_memory) {
  EXPECT_GE(granted_cores(), 1);
  EXPECT_GT(available_memory(), 0U);
}

TEST(host_resources, denormals_are_flushed_only_while_asked_for) {
  volatile float tiny = 1e-39F;
  {
    const denormals_off off;
    EXPECT_EQ(tiny * 1.0F, 0.0F);
  }
  EXPECT_NE(tiny * 1.0F, 0.0F);
}

TEST(host_resources, mapped_pages_are_zero_and_movable) {
  auto memory = page_memory::map(1 << 20);
  ASSERT_TRUE(memory.has_value());
  page_memory moved = std::move(*memory);
  EXPECT_EQ(moved.size(), std::size_t{1 << 20});
  EXPECT_EQ(moved.data()[12345], std::byte{0});
}

TEST(host_resources, memory_that_cannot_be_had_is_an_error_that_says_how_much) {
  const auto memory = page_memory::map(std::size_t{1} << 62);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, error_code::io);
  EXPECT_NE(memory.error().message.find("MiB"), std::string::npos);
}

}  // namespace
}  // namespace tandem::gpu::host
