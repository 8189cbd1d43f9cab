#include "gpu/host/compute_team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "config/limits.hpp"
#include "core/assert.hpp"
#include "gpu/host/host_resources.hpp"

namespace tandem::gpu::host {
namespace {

using body_function = std::function<void(std::int64_t, std::int64_t, std::int32_t)>;

/// More chunks than threads, so that a preempted thread holds up one small chunk only.
constexpr std::int64_t kChunksPerThread = 4;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

bool spin_expired(std::chrono::steady_clock::time_point start) {
  return std::chrono::steady_clock::now() - start > limits::kTeamSpin;
}

}  // namespace

/// `claims_` holds (job number << 32 | chunks not yet claimed). A thread owns a chunk when its compare-and-swap took
/// the number down by one; the job cannot end before that chunk is done, so the job's fields are stable while it runs.
/// A helper that comes late finds nothing to claim and touches nothing.
struct compute_team::impl {
  std::vector<std::thread> helpers;
  std::int32_t thread_count = 1;

  std::atomic<std::uint64_t> claims{0};
  std::atomic<std::int64_t> chunks_done{0};
  std::atomic<std::int32_t> sleeping{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable wake;

  // Of the job in flight; written by the leader before `claims` announces it.
  const body_function* body = nullptr;
  std::int64_t count = 0;
  std::int64_t chunk_size = 0;
  std::int64_t chunks = 0;
  std::exception_ptr failure;  // under `mutex`

  static std::uint32_t unclaimed(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

  void run_chunk(std::int64_t index, std::int32_t thread) {
    const std::int64_t begin = index * chunk_size;
    try {
      (*body)(begin, std::min(count, begin + chunk_size), thread);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
    chunks_done.fetch_add(1, std::memory_order_release);
  }

  void work(std::int32_t thread) {
    std::uint64_t word = claims.load(std::memory_order_acquire);
    while (unclaimed(word) != 0) {
      if (!claims.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      run_chunk(chunks - unclaimed(word), thread);
      word = claims.load(std::memory_order_acquire);
    }
  }

  bool idle() const { return unclaimed(claims.load(std::memory_order_seq_cst)) == 0 && !stopping.load(); }

  void sleep() {
    std::unique_lock lock(mutex);
    sleeping.fetch_add(1, std::memory_order_seq_cst);
    wake.wait(lock, [this] { return !idle(); });
    sleeping.fetch_sub(1, std::memory_order_seq_cst);
  }

  void help(std::int32_t thread) {
    const denormals_off same_rounding_everywhere;
    while (!stopping.load(std::memory_order_acquire)) {
      work(thread);
      const auto start = std::chrono::steady_clock::now();
      while (idle() && !spin_expired(start)) relax();
      if (idle()) sleep();
    }
  }

  void announce(std::int64_t jobs_chunks) {
    chunks_done.store(0, std::memory_order_relaxed);
    const std::uint64_t number = (claims.load(std::memory_order_relaxed) >> 32) + 1;
    claims.store(number << 32 | static_cast<std::uint64_t>(jobs_chunks), std::memory_order_seq_cst);
    if (sleeping.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard lock(mutex); }
    wake.notify_all();
  }

  void await_helpers() {
    const auto start = std::chrono::steady_clock::now();
    bool patient = false;
    while (chunks_done.load(std::memory_order_acquire) != chunks) {
      if (patient) {
        std::this_thread::yield();
      } else {
        relax();
        patient = spin_expired(start);
      }
    }
  }
};

compute_team::compute_team(std::int32_t threads) : impl_(std::make_unique<impl>()) {
  TANDEM_ASSERT(threads >= 1 && static_cast<std::size_t>(threads) <= limits::kMaxComputeThreads);
  impl_->thread_count = threads;
  impl_->helpers.reserve(static_cast<std::size_t>(threads - 1));
  for (std::int32_t thread = 1; thread < threads; ++thread)
    impl_->helpers.emplace_back([team = impl_.get(), thread] { team->help(thread); });
}

compute_team::~compute_team() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping.store(true);
  }
  impl_->wake.notify_all();
  for (auto& helper : impl_->helpers) helper.join();
}

std::int32_t compute_team::threads() const {
  return impl_->thread_count;
}

void compute_team::parallel_for(std::int64_t count, std::int64_t grain, const body_function& body) {
  TANDEM_ASSERT(count >= 0 && grain >= 1);
  if (count == 0) return;
  if (impl_->thread_count == 1 || count <= grain) return body(0, count, 0);
  const std::int64_t share = count / (impl_->thread_count * kChunksPerThread);
  impl_->body = &body;
  impl_->count = count;
  impl_->chunk_size = std::max({grain, share, std::int64_t{1}});
  impl_->chunks = (count + impl_->chunk_size - 1) / impl_->chunk_size;
  impl_->announce(impl_->chunks);
  impl_->work(0);
  impl_->await_helpers();
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
}

}  // namespace tandem::gpu::host
