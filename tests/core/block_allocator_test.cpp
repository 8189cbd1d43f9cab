#include "core/kv/block_allocator.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/core/naive_allocator.hpp"

namespace tandem {
namespace {

using tokens_t = std::vector<token_id>;

std::shared_ptr<const tokens_t> shared(tokens_t tokens) {
  return std::make_shared<const tokens_t>(std::move(tokens));
}

std::uint64_t constant_hash(std::uint64_t, std::span<const token_id>) {
  return 7;
}
std::uint64_t one_bit_hash(std::uint64_t parent, std::span<const token_id> tokens) {
  return parent ^ (static_cast<std::uint64_t>(tokens[0]) & 1u);
}
using hash_function = std::uint64_t (*)(std::uint64_t, std::span<const token_id>);

constexpr std::int32_t kBlockSize = 2;

block_allocator::options options_with(std::int32_t blocks, hash_function hash = nullptr) {
  return {blocks, kBlockSize, true, hash};
}

publish_blocks one(block_id block, block_id parent, tokens_t tokens, bool draft_valid = false, std::uint64_t salt = 0) {
  return {1, {{block, parent, salt, shared(std::move(tokens)), draft_valid}}};
}

match_prefix asking(tokens_t tokens, std::uint64_t salt = 0) {
  match_prefix request;
  request.max_tokens = static_cast<std::int32_t>(tokens.size());
  request.tokens = shared(std::move(tokens));
  request.salt = salt;
  return request;
}

TEST(block_allocator, leases_what_there_is_and_says_what_is_left) {
  block_allocator allocator(options_with(4));
  const blocks_leased first = allocator.lease({3});
  EXPECT_EQ(first.blocks.size(), 3u);
  EXPECT_EQ(first.still_free, 1);
  EXPECT_EQ(allocator.lease({3}).blocks.size(), 1u);
  EXPECT_TRUE(allocator.lease({1}).blocks.empty());
  allocator.release({1, first.blocks});
  EXPECT_EQ(allocator.count().free, 3);
  allocator.check();
}

TEST(block_allocator, a_shared_block_is_free_when_its_last_holder_lets_go) {
  block_allocator allocator(options_with(3));
  const auto b = allocator.lease({2}).blocks;
  allocator.share({1, b});
  allocator.share({1, {b[0]}});
  allocator.share({2, b});  // of another pool
  allocator.release({1, {b[0], b[1]}});
  EXPECT_EQ(allocator.count().held, 2);
  allocator.release({1, {b[0], b[1]}});
  EXPECT_EQ(allocator.count().held, 1);
  allocator.release({1, {b[0]}});
  EXPECT_EQ(allocator.count().free, 3);
  allocator.check();
}

TEST(block_allocator, reuses_the_last_freed_block_first) {
  block_allocator allocator(options_with(8));
  const blocks_leased leased = allocator.lease({3});
  allocator.release({1, {leased.blocks[1]}});
  EXPECT_EQ(allocator.lease({1}).blocks, (std::vector<block_id>{leased.blocks[1]}));
}

TEST(block_allocator, B6_matches_whole_blocks_up_to_the_limit_only) {
  block_allocator allocator(options_with(8));
  const auto b = allocator.lease({2}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}));
  allocator.publish(one(b[1], b[0], {3, 4}));
  allocator.release({1, b});
  EXPECT_EQ(allocator.count().cached, 2);
  match_prefix request = asking({1, 2, 3, 4});
  request.max_tokens = 3;  // known - 1: something must be left to compute
  const prefix_matched partly = allocator.match(request);
  EXPECT_EQ(partly.cached_target, 2);
  EXPECT_EQ(partly.blocks, (std::vector<block_id>{b[0]}));
  const prefix_matched whole = allocator.match(asking({1, 2, 3, 4, 5}));
  EXPECT_EQ(whole.cached_target, 4);
  EXPECT_EQ(allocator.count().held, 2);
  allocator.release({1, partly.blocks});
  allocator.release({1, whole.blocks});
  EXPECT_EQ(allocator.count().held, 0);
  allocator.check();
}

TEST(block_allocator, B6_never_finds_the_same_tail_behind_another_first_block_or_salt) {
  for (const hash_function hash : {hash_function{nullptr}, hash_function{constant_hash}}) {
    block_allocator allocator(options_with(8, hash));
    const auto b = allocator.lease({2}).blocks;
    allocator.publish(one(b[0], kNoBlock, {1, 2}));
    allocator.publish(one(b[1], b[0], {3, 4}));
    EXPECT_EQ(allocator.match(asking({9, 9, 3, 4})).cached_target, 0);
    EXPECT_EQ(allocator.match(asking({3, 4})).cached_target, 0);
    EXPECT_EQ(allocator.match(asking({1, 2, 3, 5})).cached_target, 2);
    EXPECT_EQ(allocator.match(asking({1, 2, 3, 4}, 1)).cached_target, 0);
    EXPECT_EQ(allocator.match(asking({1, 2, 3, 4})).cached_target, 4);
    allocator.check();
  }
}

TEST(block_allocator, A14_reports_draft_kv_separately_until_it_is_upgraded) {
  block_allocator allocator(options_with(8));
  const auto b = allocator.lease({3}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}, true));
  allocator.publish(one(b[1], b[0], {3, 4}, false));
  allocator.publish(one(b[2], b[1], {5, 6}, true));
  const tokens_t all{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(allocator.match(asking(all)).cached_target, 6);
  EXPECT_EQ(allocator.match(asking(all)).cached_draft, 2);
  allocator.publish(one(b[1], b[0], {3, 9}, true));  // other tokens: not an upgrade
  EXPECT_EQ(allocator.match(asking(all)).cached_draft, 2);
  allocator.publish(one(b[1], b[0], {3, 4}, true));
  EXPECT_EQ(allocator.match(asking(all)).cached_draft, 6);
}

TEST(block_allocator, does_not_find_an_old_child_behind_a_parent_that_was_evicted_and_filled_anew) {
  block_allocator allocator(options_with(2));
  auto b = allocator.lease({2}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}));
  allocator.publish(one(b[1], b[0], {3, 4}));
  allocator.release({1, {b[0]}});  // the parent alone: evicted first
  const auto fresh = allocator.lease({1}).blocks;
  ASSERT_EQ(fresh, (std::vector<block_id>{b[0]}));
  allocator.publish(one(fresh[0], kNoBlock, {8, 8}));
  EXPECT_EQ(allocator.match(asking({8, 8, 3, 4})).cached_target, 2);
  EXPECT_EQ(allocator.match(asking({1, 2, 3, 4})).cached_target, 0);
  allocator.check();
}

TEST(block_allocator, evicts_a_released_chain_from_its_end) {
  block_allocator allocator(options_with(3));
  const auto b = allocator.lease({3}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}));
  allocator.publish(one(b[1], b[0], {3, 4}));
  allocator.publish(one(b[2], b[1], {5, 6}));
  allocator.release({1, b});
  EXPECT_EQ(allocator.lease({1}).blocks, (std::vector<block_id>{b[2]}));
  EXPECT_EQ(allocator.match(asking({1, 2, 3, 4, 5, 6})).cached_target, 4);
}

TEST(block_allocator, hangs_children_of_a_second_copy_under_the_first) {
  block_allocator allocator(options_with(4));
  const auto a = allocator.lease({1}).blocks;
  const auto b = allocator.lease({2}).blocks;
  allocator.publish(one(a[0], kNoBlock, {1, 2}));
  allocator.publish(one(b[0], kNoBlock, {1, 2}));  // the same content again
  allocator.publish(one(b[1], b[0], {3, 4}));
  EXPECT_EQ(allocator.match(asking({1, 2, 3, 4})).blocks, (std::vector<block_id>{a[0], b[1]}));
  allocator.check();
}

TEST(block_allocator, ignores_other_pool_generations_and_blocks_behind_unknown_parents) {
  block_allocator allocator(options_with(4), 5);
  EXPECT_TRUE(allocator.lease({2, 4}).blocks.empty());
  const auto b = allocator.lease({2, 5}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}));  // generation 1
  allocator.release({4, b});
  EXPECT_EQ(allocator.count().held, 2);
  EXPECT_EQ(allocator.match(asking({1, 2})).cached_target, 0);
  publish_blocks behind = one(b[1], b[0], {3, 4});
  behind.pool_gen = 5;
  allocator.publish(behind);
  allocator.release({5, b});
  EXPECT_EQ(allocator.count().free, 4);
}

TEST(block_allocator, without_prefix_caching_finds_nothing) {
  block_allocator::options options = options_with(4);
  options.prefix_caching = false;
  block_allocator allocator(options);
  const auto b = allocator.lease({1}).blocks;
  allocator.publish(one(b[0], kNoBlock, {1, 2}));
  allocator.release({1, b});
  EXPECT_EQ(allocator.count().free, 4);
  EXPECT_EQ(allocator.match(asking({1, 2})).cached_target, 0);
}

TEST(block_allocator, adopts_the_holds_of_its_predecessor) {
  block_allocator allocator(options_with(5), 2);
  allocator.adopt({1, {0, 1, 2}});
  EXPECT_EQ(allocator.count().held, 0) << "an older generation";
  allocator.adopt({2, {0, 1, 1, 4}});
  EXPECT_EQ(allocator.count().held, 3);
  allocator.release({2, {1, 4}});
  EXPECT_EQ(allocator.count().held, 2);
  allocator.release({2, {1, 0}});
  EXPECT_EQ(allocator.count().free, 5);
  allocator.check();
}

// --- random sequences against the naive model, contents checked against what was really written ---

class allocator_walk {
 public:
  allocator_walk(std::uint32_t seed, hash_function hash)
      : random_(seed), allocator_(options_with(kBlocks, hash)), naive_(kBlocks), written_(kBlocks) {}

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      const std::uint32_t choice = below(11);
      if (live_.empty() || (choice < 3 && live_.size() < kMaxLive)) {
        start();
      } else if (choice < 7) {
        extend(live_[below(live_.size())]);
      } else if (choice < 8) {
        publish(live_[below(live_.size())], true);
      } else if (choice < 9 && live_.size() < kMaxLive) {
        share(live_[below(live_.size())]);
      } else {
        end(below(live_.size()));
      }
      check();
    }
  }

 private:
  static constexpr std::int32_t kBlocks = 24;
  static constexpr std::size_t kMaxLive = 6;  // few enough that blocks are cached and evicted all the time
  struct sequence {
    tokens_t tokens;  // of its full blocks
    std::uint64_t salt = 0;
    std::vector<block_id> blocks;
  };

  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  // A small alphabet, so that contents repeat all the time.
  void start() {
    sequence fresh;
    fresh.salt = below(4) == 0 ? 1 : 0;
    tokens_t wanted(below(7) * kBlockSize + below(2));
    for (token_id& token : wanted) token = static_cast<token_id>(below(2));
    match_prefix request = asking(wanted, fresh.salt);
    request.max_tokens = std::max(0, static_cast<std::int32_t>(wanted.size()) - 1);
    const prefix_matched hit = allocator_.match(request);
    const prefix_matched expected = naive_.match(request, kBlockSize);
    ASSERT_EQ(hit.blocks, expected.blocks);
    ASSERT_EQ(hit.cached_target, expected.cached_target);
    ASSERT_EQ(hit.cached_draft, expected.cached_draft);
    fresh.blocks = hit.blocks;
    fresh.tokens.assign(wanted.begin(), wanted.begin() + hit.cached_target);
    for (std::size_t i = 0; i < hit.blocks.size(); ++i) {
      const auto& [salt, prefix] = written_[static_cast<std::size_t>(hit.blocks[i])];
      ASSERT_EQ(salt, fresh.salt) << "someone else's KV";
      ASSERT_TRUE(prefix.size() == (i + 1) * kBlockSize &&
                  std::equal(prefix.begin(), prefix.end(), fresh.tokens.begin()))
          << "someone else's KV";
    }
    live_.push_back(fresh);
  }

  void extend(sequence& grown) {
    const auto want = static_cast<std::int32_t>(1 + below(2));
    const blocks_leased leased = allocator_.lease({want});
    ASSERT_TRUE(naive_.leased(leased, want));
    for (const block_id block : leased.blocks) {
      for (std::int32_t i = 0; i < kBlockSize; ++i) grown.tokens.push_back(static_cast<token_id>(below(2)));
      grown.blocks.push_back(block);
      written_[static_cast<std::size_t>(block)] = {grown.salt, grown.tokens};
    }
    if (below(4) != 0) publish(grown, below(2) == 0);
  }

  // A copy: both go on with blocks of their own.
  void share(const sequence& known) {
    allocator_.share({1, known.blocks});
    naive_.share(known.blocks);
    live_.push_back(sequence(known));
  }

  void publish(const sequence& known, bool draft_valid) {
    publish_blocks message{1, {}};
    for (std::size_t i = 0; i < known.blocks.size(); ++i) {
      const auto begin = known.tokens.begin() + static_cast<std::ptrdiff_t>(i * kBlockSize);
      message.entries.push_back({known.blocks[i], i == 0 ? kNoBlock : known.blocks[i - 1], known.salt,
                                 shared({begin, begin + kBlockSize}), draft_valid});
    }
    allocator_.publish(message);
    for (const auto& entry : message.entries) naive_.publish(entry);
  }

  void end(std::size_t which) {
    allocator_.release({1, live_[which].blocks});
    naive_.release(live_[which].blocks);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void check() {
    allocator_.check();
    ASSERT_EQ(allocator_.count().free, naive_.count().free);
    ASSERT_EQ(allocator_.count().held, naive_.count().held);
    ASSERT_EQ(allocator_.count().cached, naive_.count().cached);
  }

  std::mt19937 random_;
  block_allocator allocator_;
  testing::naive_allocator naive_;
  std::vector<std::pair<std::uint64_t, tokens_t>> written_;  // by block: salt and all tokens up to its end
  std::vector<sequence> live_;
};

TEST(block_allocator, B6_equals_the_naive_model_over_random_operations_whatever_the_hash) {
  for (const hash_function hash : {hash_function{nullptr}, hash_function{constant_hash}, hash_function{one_bit_hash}}) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(seed);
      allocator_walk(seed, hash).run(600);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

}  // namespace
}  // namespace tandem
