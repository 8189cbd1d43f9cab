// Medusa heads: the original's tensor names (with or without its module's), and vLLM's.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/limits.hpp"
#include "model/head_files.hpp"

namespace tandem::model {
namespace {

/// How a checkpoint names its tensors; {0} is the head, {1} the block, the output's number is that of the blocks.
struct medusa_naming {
  const char* block;  // before "weight" and "bias"
  const char* output;
};
constexpr std::array kNamings{medusa_naming{"{0}.{1}.linear.", "{0}.{1}.weight"},
                              medusa_naming{"medusa_head.{0}.{1}.linear.", "medusa_head.{0}.{1}.weight"},
                              medusa_naming{"medusa_heads.{0}.{1}.linear.", "medusa_heads.{0}.{1}.weight"},
                              medusa_naming{"blocks.{0}.layers.{1}.", "lm_heads.{0}.weight"}};

std::string named(const char* pattern, std::int64_t head, std::int64_t part) {
  return fmt::format(fmt::runtime(pattern), head, part);
}

/// The naming of the first head's first part; the original's when none fits, for the message.
const medusa_naming& naming_of(const tensor_finder& finder, std::int64_t blocks) {
  for (const medusa_naming& each : kNamings) {
    const bool found = blocks > 0 ? finder.find(named(each.block, 0, 0) + "weight") != nullptr
                                  : finder.find(named(each.output, 0, 0)) != nullptr;
    if (found) return each;
  }
  return kNamings[0];
}

medusa_head read_head(head_files& files, const medusa_naming& naming, std::int64_t index, std::int64_t blocks) {
  const std::int64_t hidden = files.target.hidden_size;
  medusa_head head;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string name = named(naming.block, index, block);
    head.blocks.push_back(
        {files.finder.need(name + "weight", hidden, hidden), files.finder.need_if_there(name + "bias", 1, hidden)});
  }
  return head;
}

/// All heads have an output matrix, or none has and the model's own serves.
void read_outputs(head_files& files, const medusa_naming& naming, std::int64_t blocks, head_description& head) {
  const tensor* first = files.finder.find(named(naming.output, 0, blocks));
  head.draft_vocabulary = first == nullptr
                              ? files.target.vocabulary_size
                              : static_cast<std::int32_t>(std::min<std::int64_t>(first->rows, limits::kMaxVocabulary));
  if (first == nullptr) return;
  for (std::size_t index = 0; index < head.medusa.size(); ++index) {
    head.medusa[index].output = files.finder.need(named(naming.output, static_cast<std::int64_t>(index), blocks),
                                                  head.draft_vocabulary, files.target.hidden_size);
  }
}

}  // namespace

void read_medusa(head_files& files, head_description& head) {
  config_fields& fields = files.fields;
  const bool original = static_cast<bool>(fields["medusa_num_heads"]);
  const std::int64_t count = fields.integer(original ? "medusa_num_heads" : "num_heads", limits::kMaxMedusaHeads);
  const std::int64_t blocks =
      fields.integer_or(original ? "medusa_num_layers" : "num_hidden_layers", limits::kMaxMedusaLayers, 1);
  const std::int64_t hidden = fields.integer_or("hidden_size", limits::kMaxHidden, files.target.hidden_size);
  if (files.failed()) return;
  files.must_equal("hidden size", hidden, files.target.hidden_size);
  const medusa_naming& naming = naming_of(files.finder, blocks);
  const tensor* first = files.finder.find(named(naming.block, 0, 0) + "weight");
  if (first != nullptr) files.must_equal("hidden size", first->columns, files.target.hidden_size);
  for (std::int64_t index = 0; index < count && !files.failed(); ++index)
    head.medusa.push_back(read_head(files, naming, index, blocks));
  if (files.failed()) return;
  read_outputs(files, naming, blocks, head);
  if (!files.failed()) read_target_ids(files, head);
}

}  // namespace tandem::model
