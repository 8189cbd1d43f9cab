// Hidden states for draft heads: what a device hands out, against the double-precision oracle.
#include <gtest/gtest.h>

#include <numeric>

#include "gpu/reference/forward_reference.hpp"
#include "tests/gpu/device_lab.hpp"
#include "tests/gpu/host_isas.hpp"

namespace tandem::test {
namespace {

constexpr std::int32_t kHidden = 64;
constexpr std::int32_t kLayers = 4;

std::vector<token_id> some_tokens(std::int32_t count) {
  std::vector<token_id> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<token_id>((i * 37 + 11) % 250);
  return tokens;
}

/// A step that computes tokens [begin, end) of a sequence in slot 0.
std::shared_ptr<step_work> rows_of(const std::vector<token_id>& tokens, std::int32_t begin, std::int32_t end) {
  auto work = std::make_shared<step_work>();
  work->step = static_cast<step_id>(begin) + 1;
  if (begin == 0) {
    slot_opening opened;
    opened.slot = 0;
    opened.sampling = std::make_shared<const sampling_params>();
    opened.known = std::make_shared<const std::vector<token_id>>(tokens);
    opened.prompt_length = static_cast<std::int32_t>(tokens.size());
    work->opened.push_back(std::move(opened));
    std::vector<block_id> table(tokens.size() / 16 + 1);
    std::iota(table.begin(), table.end(), 3);
    work->table_deltas.push_back({0, 0, std::move(table)});
  }
  step_rows rows;
  rows.slot = 0;
  rows.first_position = begin;
  rows.tokens.assign(tokens.begin() + begin, tokens.begin() + end);
  rows.wants_features = true;
  work->rows.push_back(std::move(rows));
  return work;
}

/// Features of all tokens, computed `chunk` at a time.
std::vector<float> features_of(const gpu::host_options& options, const model::model& model,
                               const std::vector<token_id>& tokens, std::int32_t chunk) {
  device_lab lab(make_tiny(options, model));
  std::vector<float> all;
  const auto count = static_cast<std::int32_t>(tokens.size());
  for (std::int32_t begin = 0; begin < count; begin += chunk) {
    const step_outcome outcome = lab.step(rows_of(tokens, begin, std::min(begin + chunk, count)));
    EXPECT_TRUE(outcome.ok) << outcome.error_message;
    const std::vector<float>& some = outcome.slots.at(0).features;
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

rand_options four_layers() {
  rand_options options;
  options.layers = kLayers;
  return options;
}

TEST(features, of_every_layer_equal_the_oracle) {
  const auto model = open_made(make_rand(four_layers()));
  const std::vector<token_id> tokens = some_tokens(40);
  const auto expected = gpu::reference::hidden_reference(model->describe(), tokens);
  gpu::host_options options = tiny_options(2);
  options.feature_layers = {4, 0, 2, 3, 1};  // the order is the caller's
  for (const gpu::host::isa set : gpu::host::runnable_isas()) {
    options.isa = gpu::host::isa_name(set);
    const std::vector<float> got = features_of(options, *model, tokens, 40);
    const std::size_t parts = options.feature_layers.size() + 1;
    ASSERT_EQ(got.size(), tokens.size() * parts * kHidden);
    for (std::size_t position = 0; position < tokens.size(); ++position)
      for (std::size_t part = 0; part < parts; ++part)
        for (std::size_t i = 0; i < kHidden; ++i) {
          const double want =
              part + 1 == parts
                  ? expected.normalized[position][i]
                  : expected.entering[static_cast<std::size_t>(options.feature_layers[part])][position][i];
          ASSERT_NEAR(got[(position * parts + part) * kHidden + i], want, 1e-4)
              << options.isa << ", position " << position << ", part " << part;
        }
  }
}

TEST(features, do_not_depend_on_how_the_rows_are_divided) {
  const auto model = open_made(make_rand(four_layers()));
  const std::vector<token_id> tokens = some_tokens(50);
  gpu::host_options options = tiny_options(2);
  options.feature_layers = {1, 2};
  const std::vector<float> at_once = features_of(options, *model, tokens, 50);
  EXPECT_EQ(features_of(options, *model, tokens, 7), at_once);
  EXPECT_EQ(features_of(options, *model, tokens, 1), at_once);
}

TEST(features, without_layers_are_the_last_state_alone_and_without_asking_nothing) {
  const auto model = open_made(make_rand(four_layers()));
  const std::vector<token_id> tokens = some_tokens(5);
  EXPECT_EQ(features_of(tiny_options(), *model, tokens, 5).size(), 5U * kHidden);
  device_lab lab(make_tiny(tiny_options(), *model));
  const auto work = rows_of(tokens, 0, 5);
  work->rows[0].wants_features = false;
  EXPECT_TRUE(lab.step(work).slots.at(0).features.empty());
}

TEST(features, of_layers_the_model_lacks_are_refused) {
  const auto model = open_made(make_rand(four_layers()));
  for (const std::vector<std::int32_t>& layers :
       {std::vector<std::int32_t>{5}, {-1}, std::vector<std::int32_t>(limits::kMaxFeatureLayers + 1, 0)}) {
    gpu::host_options options = tiny_options();
    options.feature_layers = layers;
    const auto device = gpu::make_host_device(options, *model, nullptr);
    ASSERT_FALSE(device.has_value());
    EXPECT_EQ(device.error().param, "feature_layers");
  }
}

}  // namespace
}  // namespace tandem::test
