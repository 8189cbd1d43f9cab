#include "model/draft_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "config/limits.hpp"
#include "model/folder_file.hpp"
#include "model/head_files.hpp"
#include "model/printable.hpp"

namespace tandem::model {
namespace {

constexpr std::array<std::string_view, 4> kPickledEndings{".bin", ".pt", ".pth", ".ckpt"};

class opened_heads final : public draft_heads {
 public:
  explicit opened_heads(safetensors_weights weights) : weights_(std::move(weights)) {}
  const head_description& describe() const override { return head_; }
  std::uint64_t parameters() const override { return parameters_; }

  const safetensors_weights& weights() const { return weights_; }
  void settle(head_description head, const tensor_finder& finder) {
    head_ = std::move(head);
    for (const tensor& each : weights_.tensors)
      if (finder.used(each)) parameters_ += static_cast<std::uint64_t>(each.rows * each.columns);
  }

 private:
  safetensors_weights weights_;
  head_description head_;  // points into weights_.tensors
  std::uint64_t parameters_ = 0;
};

bool has_pickled_weights(const std::filesystem::path& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string ending = entry.path().extension().string();
    if (std::find(kPickledEndings.begin(), kPickledEndings.end(), ending) != kPickledEndings.end()) return true;
  }
  return false;
}

result<safetensors_weights> open_weights(const std::filesystem::path& folder) {
  auto weights = open_safetensors(folder, {"medusa_lm_head.safetensors", true});
  if (weights || weights.error().code != error_code::not_found || !has_pickled_weights(folder)) return weights;
  return fail(error_code::unsupported,
              fmt::format("{}: the weights are pickled, and reading a pickle can run any code; save them as "
                          "model.safetensors.",
                          folder.string()),
              folder.string());
}

bool names_eagle3(text::json_field architectures) {
  if (!architectures.is_array()) return false;
  for (const auto& each : architectures.items()) {
    std::string_view name;
    if (!each.get(name) && name.find("Eagle3") != std::string_view::npos) return true;
  }
  return false;
}

bool has_tensor_of(const std::vector<tensor>& tensors, std::string_view start) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [start](const tensor& each) { return each.name.starts_with(start); });
}

/// Absent: nothing that is known.
std::optional<head_kind> kind_of(const config_fields& fields, const std::vector<tensor>& tensors) {
  if (fields["medusa_num_heads"] || fields["model_type"].text_or("") == "medusa") return head_kind::medusa;
  if (names_eagle3(fields["architectures"]) || fields["draft_vocab_size"] || has_tensor_of(tensors, "midlayer."))
    return head_kind::eagle3;
  if (has_tensor_of(tensors, "fc.")) return head_kind::eagle;
  return std::nullopt;
}

// A tensor nobody uses means a part that nobody would execute: its guesses would be wrong.
void refuse_unused(head_files& files) {
  for (const tensor& each : files.tensors) {
    const bool is_targets = each.name == "embed_tokens.weight" || each.name == "lm_head.weight";
    if (files.finder.used(each) || is_targets || each.name.ends_with("rotary_emb.inv_freq")) continue;
    files.finder.refuse(error_code::unsupported, each.file,
                        fmt::format("{}: tensor \"{}\" is no part of a Medusa or EAGLE head as tandem knows them.",
                                    each.file, printable(each.name, 80)));
  }
}

result<std::shared_ptr<const draft_heads>> read_heads(text::json_field root, const std::string& source,
                                                      safetensors_weights weights, const description& target) {
  auto opened = std::make_shared<opened_heads>(std::move(weights));
  const std::vector<tensor>& tensors = opened->weights().tensors;
  config_fields fields(root, source);
  tensor_finder finder(source, tensors);
  const auto kind = kind_of(fields, tensors);
  if (!kind) {
    return fail(error_code::unsupported,
                fmt::format("{}: neither a Medusa nor an EAGLE head: there is no \"medusa_num_heads\" and no tensor "
                            "\"fc.weight\".",
                            source),
                source);
  }
  head_files files{source, fields, finder, tensors, opened->weights().integers, target};
  head_description head;
  head.kind = *kind;
  head.sizes.vocabulary_size = target.vocabulary_size;
  head.sizes.hidden_size = target.hidden_size;
  *kind == head_kind::medusa ? read_medusa(files, head) : read_eagle(files, head);
  if (!files.failed()) refuse_unused(files);
  if (!files.failed()) finder.check_finite();
  if (fields.failure()) return tl::unexpected(*fields.failure());
  if (finder.failure()) return tl::unexpected(*finder.failure());
  opened->settle(std::move(head), finder);
  return opened;
}

/// `ids` as the target knows them; a failure when one is out of range or they do not ascend.
void take_ids(head_files& files, const integer_array& from, bool differences, head_description& head) {
  if (from.count != head.draft_vocabulary) {
    return files.finder.refuse(error_code::corrupt, from.file,
                               fmt::format("{}: \"{}\" has {} entries but the head's output has {} rows.", from.file,
                                           from.name, from.count, head.draft_vocabulary));
  }
  head.target_ids.reserve(static_cast<std::size_t>(from.count));
  token_id last = -1;
  for (std::int64_t row = 0; row < from.count; ++row) {
    const std::int64_t value = from.at(row);
    const std::int64_t vocabulary = files.target.vocabulary_size;
    const std::int64_t id = value < -vocabulary || value > vocabulary ? -1 : value + (differences ? row : 0);
    if (id <= last || id >= vocabulary) {
      return files.finder.refuse(error_code::corrupt, from.file,
                                 fmt::format("{}: entry {} of \"{}\" is {}: the model's token ids must ascend and lie "
                                             "below {}.",
                                             from.file, row, from.name, value, vocabulary));
    }
    last = static_cast<token_id>(id);
    head.target_ids.push_back(last);
  }
}

}  // namespace

std::string_view name_of(head_kind kind) {
  switch (kind) {
    case head_kind::medusa:
      return "Medusa";
    case head_kind::eagle:
      return "EAGLE";
    case head_kind::eagle3:
      return "EAGLE-3";
  }
  return "";
}

const integer_array* head_files::find_integers(std::string_view name) const {
  const auto found =
      std::find_if(integers.begin(), integers.end(), [name](const integer_array& each) { return each.name == name; });
  return found == integers.end() ? nullptr : &*found;
}

void head_files::must_equal(std::string_view what, std::int64_t value, std::int64_t of_target) {
  if (value == of_target) return;
  finder.refuse(error_code::invalid_argument, source,
                fmt::format("{}: the head was made for another model: its {} is {}, the model's is {}.", source, what,
                            value, of_target));
}

void read_target_ids(head_files& files, head_description& head) {
  const integer_array* differences = files.find_integers("d2t");
  const integer_array* ids = files.find_integers("token_map");
  if (differences != nullptr) return take_ids(files, *differences, true, head);
  if (ids != nullptr) return take_ids(files, *ids, false, head);
  files.must_equal("vocabulary", head.draft_vocabulary, files.target.vocabulary_size);
}

result<std::shared_ptr<const draft_heads>> parse_draft_heads(std::string_view config, const std::string& source,
                                                             safetensors_weights weights, const description& target) {
  text::json_document document;
  const auto root = document.parse(config, source);
  if (!root) return tl::unexpected(root.error());
  return read_heads(*root, source, std::move(weights), target);
}

result<std::shared_ptr<const draft_heads>> open_draft_heads(const std::filesystem::path& folder,
                                                            const description& target) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return fail(error_code::not_found,
                fmt::format("{}: there is no such folder; draft heads are a folder with config.json and "
                            "model.safetensors.",
                            folder.string()),
                folder.string());
  }
  const auto config = open_folder_file(folder, "config.json", limits::kMaxConfigJsonBytes);
  if (!config) return tl::unexpected(config.error());
  const std::string source = (folder / "config.json").string();
  auto weights = open_weights(folder);
  if (!weights) return tl::unexpected(weights.error());
  const auto bytes = (*config)->bytes();
  return parse_draft_heads({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source, std::move(*weights),
                           target);
}

}  // namespace tandem::model
