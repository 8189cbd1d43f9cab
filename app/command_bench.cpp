#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>
#include <numeric>

#include "app/command.hpp"
#include "app/generation_run.hpp"
#include "app/histogram_text.hpp"
#include "app/latency_statistics.hpp"
#include "app/request_fields.hpp"
#include "config/flags.hpp"
#include "core/speculation/method_names.hpp"
#include "engine/loader.hpp"

namespace tandem::app {
namespace {

using clock = std::chrono::steady_clock;
using ordered_json = nlohmann::ordered_json;

struct bench_options {
  config::options settings;
  std::string prompt;
  std::int32_t input_len = 32;
  std::int32_t output_len = 128;
  std::int32_t requests = 1;  // at once
  std::int32_t repeats = 5;
  std::int32_t warmup = 1;
  bool json = false;
};

double milliseconds(clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// When the pieces of one round came. Filled by the delivery thread.
class stopwatch {
 public:
  void start(std::size_t requests) {
    const std::lock_guard lock(mutex_);
    started_ = clock::now();
    tracks_.clear();
    tracks_.reserve(requests);
  }

  void hear(const generation_event& event) {
    if (event.tokens.empty() && !event.end) return;
    const auto now = clock::now();
    const std::lock_guard lock(mutex_);
    track& one = tracks_[event.id];
    if (!event.tokens.empty()) {
      if (one.tokens == 0) ttft_ms.push_back(milliseconds(now - started_));
      // A burst of j tokens is j samples of gap / j.
      else
        itl_ms.insert(itl_ms.end(), event.tokens.size(),
                      milliseconds(now - one.last) / static_cast<double>(event.tokens.size()));
      if (one.tokens == 0) one.first = now;
      one.tokens += event.tokens.size();
      one.last = now;
    }
    if (!event.end) return;
    e2e_ms.push_back(milliseconds(now - started_));
    if (one.tokens > 1) tpot_ms.push_back(milliseconds(one.last - one.first) / static_cast<double>(one.tokens - 1));
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    for (auto* samples : {&ttft_ms, &itl_ms, &tpot_ms, &e2e_ms}) samples->clear();
  }

  std::vector<double> ttft_ms, itl_ms, tpot_ms, e2e_ms;

 private:
  struct track {
    std::size_t tokens = 0;
    clock::time_point first, last;
  };
  std::mutex mutex_;
  clock::time_point started_;
  std::unordered_map<request_id, track> tracks_;
};

/// Sums over all measured rounds.
struct totals {
  double wall_s = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t steps = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted_tokens = 0;
  double prefill_ms = 0;

  void add(const sequence_stats& stats) {
    prompt_tokens += stats.prompt_tokens;
    cached_tokens += stats.cached_tokens;
    completion_tokens += stats.completion_tokens;
    steps += stats.steps;
    draft_tokens += stats.draft_tokens;
    accepted_tokens += stats.accepted_tokens;
    prefill_ms += stats.prefill_ms;
  }
};

/// What /metrics says of steps: the engine's part, which no single request can see.
struct step_readings {
  histogram_counts duration;
  histogram_counts overhead;
};

step_readings read_steps(const runtime& engine) {
  const std::string text = engine.metrics_text();
  return {read_histogram(text, "tandem:step_duration_seconds"), read_histogram(text, "tandem:engine_overhead_seconds")};
}

void add_steps(ordered_json& root, const step_readings& before, const step_readings& after) {
  const histogram_counts duration = after.duration.since(before.duration);
  const histogram_counts overhead = after.overhead.since(before.overhead);
  root["engine_steps"] = duration.count;
  root["step_ms"] = summarize(duration);
  root["engine_overhead_ms"] = summarize(overhead);
  root["engine_overhead_share"] = duration.sum > 0 ? overhead.sum / duration.sum : 0;
}

/// A prompt of exactly `length` tokens that no earlier one shares a beginning with.
std::vector<token_id> made_prompt(std::int32_t length, std::int32_t vocabulary, std::uint64_t& state) {
  std::vector<token_id> ids;
  for (std::int32_t index = 0; index < length; ++index) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;  // Knuth's MMIX generator
    ids.push_back(static_cast<token_id>((state >> 33) % static_cast<std::uint64_t>(vocabulary)));
  }
  return ids;
}

generation_request made_request(const bench_options& options, const runtime& engine, std::uint64_t& state) {
  generation_request request;
  if (options.prompt.empty())
    request.prompt = made_prompt(options.input_len, engine.tokenizer().size(), state);
  else
    request.prompt = prompt_text{options.prompt, {{0, options.prompt.size()}}, true};
  request.sampling.temperature = 0;
  request.stopping.ignore_eos = true;
  request.stopping.max_tokens = options.output_len;
  return request;
}

/// One round: `requests` at once, all to their end.
result<void> run_round(const bench_options& options, generation_run& run, stopwatch& watch, const runtime& engine,
                       std::uint64_t& state, totals& sums) {
  const auto started = clock::now();
  watch.start(static_cast<std::size_t>(options.requests));
  for (std::int32_t index = 0; index < options.requests; ++index) run.submit(made_request(options, engine, state));
  while (run.in_flight() > 0) {
    const engine::collected_answer answer = run.take_oldest();
    if (answer.refused) return tl::unexpected(*answer.refused);
    const engine::collected_choice& choice = answer.choices.front();
    if (choice.end->reason == finish_reason::error) return fail(error_code::device_failed, choice.end->message);
    sums.add(choice.stats);
  }
  sums.wall_s += std::chrono::duration<double>(clock::now() - started).count();
  return {};
}

ordered_json results(const bench_options& options, const runtime& engine, const stopwatch& watch, const totals& sums) {
  const runtime_options& running = engine.options();
  const auto per_second = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0; };
  const auto computed = static_cast<double>(sums.prompt_tokens - sums.cached_tokens);
  ordered_json root = {
      {"model", running.model_name}, {"device", engine.device().name}, {"threads", engine.device().threads}};
  const bool any_method = running.speculation.adaptive && running.speculation.any_method;
  root["speculative_config"] = {{"method", any_method ? "auto" : name_of(running.speculation.method)},
                                {"model", options.settings.engine.speculation.draft_model},
                                {"num_speculative_tokens", running.speculation.k},
                                {"adaptive", running.speculation.adaptive}};
  root["requests_at_once"] = options.requests;
  root["rounds"] = options.repeats;
  root["prompt_tokens"] = sums.prompt_tokens;
  root["completion_tokens"] = sums.completion_tokens;
  root["tokens_per_s"] = per_second(static_cast<double>(sums.completion_tokens), sums.wall_s);
  root["prefill_tokens_per_s"] = per_second(computed, sums.prefill_ms / 1000);
  root["ttft_ms"] = summarize(watch.ttft_ms);
  root["itl_ms"] = summarize(watch.itl_ms);
  root["tpot_ms"] = summarize(watch.tpot_ms);
  root["e2e_ms"] = summarize(watch.e2e_ms);
  const auto steps = static_cast<double>(sums.steps);
  root["mean_accepted_length"] = steps > 0 ? 1 + static_cast<double>(sums.accepted_tokens) / steps : 0;
  root["draft_n"] = sums.draft_tokens;
  root["draft_n_accepted"] = sums.accepted_tokens;
  return root;
}

void print_results(const ordered_json& root) {
  fmt::print("{} on {}, {} at once\n", root["model"].get<std::string>(), root["device"].get<std::string>(),
             root["requests_at_once"].dump());
  for (const char* name : {"tokens_per_s", "prefill_tokens_per_s", "mean_accepted_length", "engine_overhead_share"})
    fmt::print("{:<22}{:>10.4g}\n", name, root[name].get<double>());
  fmt::print("{:<22}{:>10}{:>10}{:>10}{:>10}\n", "", "mean", "p50", "p90", "p99");
  for (const char* name : {"ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"}) {
    const ordered_json& line = root[name];
    fmt::print("{:<22}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}\n", name, line["mean"].get<double>(),
               line["p50"].get<double>(), line["p90"].get<double>(), line["p99"].get<double>());
  }
  for (const char* name : {"step_ms", "engine_overhead_ms"}) {
    const ordered_json& line = root[name];
    fmt::print("{:<22}{:>10.3f}{:>10.3f}{:>10}{:>10.3f}\n", name, line["mean"].get<double>(), line["p50"].get<double>(),
               "", line["p99"].get<double>());
  }
}

int bench(CLI::App& command, bench_options& options) {
  if (auto ready = prepare(command, options.settings); !ready) return report(ready.error());
  auto engine = engine::start_engine(options.settings.engine, [](const std::string& text) { spdlog::info(text); });
  if (!engine) return report(engine.error());
  engine::client client(**engine);
  stopwatch watch;
  generation_run run(client, [&watch](const generation_event& event) { watch.hear(event); });
  std::uint64_t state = options.settings.engine.seed;
  totals sums;
  step_readings before;
  for (std::int32_t round = -options.warmup; round < options.repeats; ++round) {
    if (round == 0) {
      watch.forget();
      before = read_steps(**engine);
      sums = {};
    }
    if (auto done = run_round(options, run, watch, **engine, state, sums); !done) return report(done.error());
  }
  client.flush();  // a stopwatch hears its last piece before its samples are read
  ordered_json root = results(options, **engine, watch, sums);
  add_steps(root, before, read_steps(**engine));
  if (options.json)
    fmt::print("{}\n", root.dump());
  else
    print_results(root);
  return kExitOk;
}

void add_kind(CLI::App& bench_command, command_table& commands, const std::string& name, const std::string& summary,
              std::int32_t requests, std::int32_t repeats) {
  CLI::App* command = declare(bench_command, name, summary);
  const auto options = std::make_shared<bench_options>();
  options->settings.logging.level = config::log_level::warning;
  options->requests = requests;
  options->repeats = repeats;
  const auto count = [&](const std::string& flag, std::int32_t& target, std::int32_t least, std::int32_t most,
                         const std::string& help) {
    command->add_option(flag, target, fmt::format("{}; default {}", help, target))
        ->check(CLI::Range(least, most).description(""))
        ->type_name(fmt::format("{}..{}", least, most));
  };
  count("--input-len", options->input_len, 1, limits::kMaxModelLength, "Tokens of each prompt");
  count("--output-len", options->output_len, 1, limits::kMaxModelLength, "Tokens of each answer");
  count("--batch-size,--num-prompts", options->requests, 1, static_cast<std::int32_t>(limits::kMaxGenerateInFlight),
        "Requests at once");
  count("--num-iters", options->repeats, 1, limits::kMaxBenchRepeats, "Measured rounds");
  count("--num-iters-warmup", options->warmup, 0, limits::kMaxBenchRepeats, "Rounds before, not measured");
  command->add_option("--prompt", options->prompt, "This prompt instead of made ones (repeats hit the prefix cache)");
  command->add_flag("--json", options->json, "One JSON object");
  config::add_engine_flags(*command, options->settings);
  config::add_common_flags(*command, options->settings);
  commands.emplace_back(command, [command, options] { return bench(*command, *options); });
}

}  // namespace

void add_bench(CLI::App& root, command_table& commands) {
  CLI::App* command = declare(root, "bench", "Measure: latency, throughput");
  command->require_subcommand(0, 1);
  add_kind(*command, commands, "latency", "A few requests at a time: time to first token, per token, end to end", 1, 5);
  add_kind(*command, commands, "throughput", "Many requests at once", 32, 1);
  commands.emplace_back(command, [] {
    return report_usage("which bench? tandem bench latency MODEL or tandem bench throughput MODEL.");
  });
}

}  // namespace tandem::app
