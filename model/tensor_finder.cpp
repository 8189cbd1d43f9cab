#include "model/tensor_finder.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/tensor_layout.hpp"

namespace tandem::model {

tensor_finder::tensor_finder(std::string source, const std::vector<tensor>& tensors)
    : source_(std::move(source)), tensors_(tensors) {
  for (const tensor& each : tensors) by_name_.emplace(each.name, &each);
}

const tensor* tensor_finder::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const tensor* tensor_finder::need(const std::string& name, std::int64_t rows, std::int64_t columns) {
  if (failure_) return nullptr;
  const tensor* found = find(name);
  if (found == nullptr) {
    refuse(error_code::corrupt, source_,
           fmt::format("{}: tensor \"{}\" is missing; the model is incomplete.", source_, name));
    return nullptr;
  }
  if (found->rows != rows || found->columns != columns) {
    refuse(error_code::corrupt, found->file,
           fmt::format("{}: tensor \"{}\" at offset {} has {} × {} values but {} says {} × {}.", found->file, name,
                       found->file_offset, found->rows, found->columns, source_, rows, columns));
    return nullptr;
  }
  used_.insert(found);
  return found;
}

const tensor* tensor_finder::need_if_there(const std::string& name, std::int64_t rows, std::int64_t columns) {
  return find(name) == nullptr ? nullptr : need(name, rows, columns);
}

void tensor_finder::check_finite() {
  for (const tensor& each : tensors_) {
    if (failure_) return;
    if (!used(each)) continue;
    const auto bad = find_not_finite(each);
    if (!bad) continue;
    refuse(error_code::corrupt, each.file,
           fmt::format("{}: tensor \"{}\" holds an infinity or NaN at offset {}; the file is damaged.", each.file,
                       each.name, *bad));
  }
}

void tensor_finder::refuse(error_code code, std::string param, std::string message) {
  if (!failure_) failure_ = error{code, std::move(message), std::move(param)};
}

}  // namespace tandem::model
