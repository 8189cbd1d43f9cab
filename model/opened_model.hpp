#pragma once
/// The one implementation of model: what a reader found, and the mapped files it points into.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/mapped_file.hpp"
#include "model/model.hpp"

namespace tandem::model {

struct model_parts {
  std::vector<std::shared_ptr<const mapped_file>> files;
  std::vector<tensor> tensors;
  description sizes;  ///< points into `tensors`
  std::vector<std::pair<std::string, std::string>> metadata;
  text::tokenizer_spec tokenizer;
};

class opened_model final : public model {
 public:
  explicit opened_model(model_parts parts) : parts_(std::move(parts)) {}
  const description& describe() const override { return parts_.sizes; }
  std::span<const tensor> tensors() const override { return parts_.tensors; }
  std::span<const std::pair<std::string, std::string>> metadata() const override { return parts_.metadata; }
  const text::tokenizer_spec& tokenizer() const override { return parts_.tokenizer; }

 private:
  model_parts parts_;
};

}  // namespace tandem::model
