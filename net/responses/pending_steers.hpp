#pragma once
/// Steering inputs whose response called functions: they wait for the request that brings the results. Pure.

#include <map>
#include <string>
#include <vector>

#include "net/responses/response_request.hpp"
#include "net/responses/socket_events.hpp"

namespace tandem::net {

/// The inputs of several steerings, one behind the other.
response_input join_steers(const std::vector<steering>& steers);

/// Owner: a responses_connection.
class pending_steers {
 public:
  /// Those that are given up for them, when too many responses wait.
  struct given_up {
    std::string response_id;
    std::vector<steering> steers;
  };
  given_up keep(const std::string& response_id, std::vector<steering> steers);
  /// Puts what waits for its previous response before the request's own input.
  void add_to(response_request& request);

 private:
  std::map<std::string, std::vector<steering>> waiting_;  // by the response that called functions
};

}  // namespace tandem::net
