#pragma once
/// Expected failures are values. A bug is an assertion (core/assert.hpp); nothing else.

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tandem {

enum class error_code {
  invalid_argument,  ///< the caller's input is wrong                 (HTTP 400)
  not_found,         ///< no such model, path, request                (404)
  too_large,         ///< body or message over its bound              (413)
  overloaded,        ///< a queue is full: try again later            (429)
  unavailable,       ///< loading, draining, device stuck             (503)
  deadline,          ///< the deadline passed before any token        (408)
  cancelled,         ///< the client went away or asked to stop
  unsupported,       ///< understood, not offered                     (400)
  corrupt,           ///< a file breaks its format
  io,                ///< the operating system said no
  device_failed,     ///< the device lost the work                    (500)
};

struct error {
  error_code code = error_code::invalid_argument;
  std::string message;  ///< one sentence: what, where, what to do
  std::string param;    ///< the field, flag or file it is about; may be empty
};

template <class T>
using result = tl::expected<T, error>;

inline tl::unexpected<error> fail(error_code code, std::string message, std::string param = {}) {
  return tl::unexpected<error>(error{code, std::move(message), std::move(param)});
}

}  // namespace tandem
