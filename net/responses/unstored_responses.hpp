#pragma once
/// Responses that were not to be stored, for `previous_response_id` on the socket that made them. Pure.

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "net/responses/response_record.hpp"

namespace tandem::net {

/// The last ones, as many as the bounds allow. Owner: a responses_connection.
class unstored_responses {
 public:
  void keep(std::shared_ptr<response_record> record);
  std::optional<std::string> conversation_of(const std::string& id) const;

 private:
  std::deque<std::shared_ptr<response_record>> records_;
  std::size_t bytes_ = 0;  // of their conversations
};

}  // namespace tandem::net
