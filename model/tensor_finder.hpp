#pragma once
/// Looks tensors of a file up by name and checks their shapes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/result.hpp"
#include "model/model.hpp"

namespace tandem::model {

/// Remembers which tensors were used. The first failure sticks. Owner: one reading; `tensors` must outlive it.
class tensor_finder {
 public:
  /// `source`: the file that states the shapes, for messages.
  tensor_finder(std::string source, const std::vector<tensor>& tensors);

  const tensor* find(std::string_view name) const;
  /// Null and a failure when it is missing or its shape is another.
  const tensor* need(const std::string& name, std::int64_t rows, std::int64_t columns);
  /// Null when it is missing; a failure too when its shape is another.
  const tensor* need_if_there(const std::string& name, std::int64_t rows, std::int64_t columns);
  /// A failure when a number of a used tensor is infinite or NaN. Reads all of them.
  void check_finite();

  void refuse(error_code code, std::string param, std::string message);
  bool used(const tensor& each) const { return used_.contains(&each); }
  const std::optional<error>& failure() const { return failure_; }

 private:
  std::string source_;
  const std::vector<tensor>& tensors_;
  std::unordered_map<std::string_view, const tensor*> by_name_;
  std::unordered_set<const tensor*> used_;
  std::optional<error> failure_;
};

}  // namespace tandem::model
