#include "net/responses/unstored_responses.hpp"

#include <utility>

#include "config/limits.hpp"

namespace tandem::net {

void unstored_responses::keep(std::shared_ptr<response_record> record) {
  bytes_ += record->conversation().size();
  records_.push_back(std::move(record));
  while (bytes_ > limits::kMaxOutboxBytes || records_.size() > limits::kMaxRequestsPerSocket) {
    bytes_ -= records_.front()->conversation().size();
    records_.pop_front();
  }
}

std::optional<std::string> unstored_responses::conversation_of(const std::string& id) const {
  for (const auto& record : records_) {
    if (record->id() == id) return record->conversation();
  }
  return std::nullopt;
}

}  // namespace tandem::net
