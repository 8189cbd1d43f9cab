// What the engine itself costs per step: the whole loop (scheduler, verifier, drafter, allocator, streamer, metrics)
// over a device that computes next to nothing. The gap between two posts to a client is one step. Prints median and
// p99.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/runtime.hpp"
#include "tests/support/lab/actor_lab.hpp"

namespace tandem {
namespace {

using clock_type = std::chrono::steady_clock;

/// Notes when posts come, and waits for the last event of all.
class stopwatch final : public outlet {
 public:
  explicit stopwatch(int sequences) : left_(sequences) {}
  void answer(submission_answer) override {}
  void post(std::vector<generation_event> events) override {
    std::lock_guard lock(mutex_);
    posts_.push_back(clock_type::now());
    for (const auto& event : events) {
      tokens_ += event.tokens.size();
      if (event.end) --left_;
    }
    if (left_ == 0) done_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
  }
  std::vector<double> gaps_us() const {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < posts_.size(); ++i)
      gaps.push_back(std::chrono::duration<double, std::micro>(posts_[i] - posts_[i - 1]).count());
    std::sort(gaps.begin(), gaps.end());
    return gaps;
  }
  std::size_t tokens() const { return tokens_; }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  int left_;
  std::vector<clock_type::time_point> posts_;
  std::size_t tokens_ = 0;
};

void measure(const char* name, draft_method method, std::int32_t k, int sequences, bool json) {
  constexpr std::int32_t kTokens = 2000;
  runtime_options options;
  options.model_name = "fake";
  options.max_model_len = 2048;
  options.speculation = {method, k, std::nullopt};
  options.suffix_drafter = method == draft_method::suffix;
  lab::fake_device_options device;
  device.threaded = true;
  device.block_size = 16;
  device.num_blocks = 129 * sequences;
  device.draft_context_limit = 2048;
  runtime_parts parts{std::make_unique<lab::fake_device>(device), lab::make_lab_tokenizer(), nullptr};
  auto engine = make_runtime(options, std::move(parts));
  if (!engine) {
    std::printf("%s: %s\n", name, engine.error().message.c_str());
    return;
  }
  auto client = std::make_shared<stopwatch>(sequences);
  for (int i = 0; i < sequences; ++i)
    (*engine)->submit(lab::ids_request(lab::made_prompt(16, static_cast<std::uint64_t>(i)), kTokens), client);
  client->wait();
  const auto gaps = client->gaps_us();
  const double median = gaps[gaps.size() / 2];
  const double p99 = gaps[gaps.size() * 99 / 100];
  if (json) {
    std::printf(R"({"drafts": "%s", "sequences": %d, "steps": %zu, "tokens": %zu, "median_us": %.1f, "p99_us": %.1f})"
                "\n",
                name, sequences, gaps.size(), client->tokens(), median, p99);
    return;
  }
  std::printf("%-12s sequences %2d  steps %5zu  tokens %6zu  median %7.1f us  p99 %7.1f us\n", name, sequences,
              gaps.size(), client->tokens(), median, p99);
}

}  // namespace
}  // namespace tandem

int main(int argument_count, char** arguments) {
  using tandem::draft_method;
  const bool json = argument_count > 1 && std::string_view(arguments[1]) == "--json";  // one object a line
  for (const int sequences : {1, 16}) {
    tandem::measure("none", draft_method::none, 0, sequences, json);
    tandem::measure("ngram", draft_method::ngram, 4, sequences, json);
    tandem::measure("suffix", draft_method::suffix, 4, sequences, json);
    tandem::measure("draft_model", draft_method::draft_model, 4, sequences, json);
  }
}
