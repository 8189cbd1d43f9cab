#pragma once
/// Which filters, tests, methods and functions exist and what they take, so that a template that needs another one is
/// refused when it is loaded.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tandem::text::jinja {

/// Parameters after the subject, in order; an argument may be given by place or by name.
struct signature {
  std::string_view name;
  std::size_t required = 0;
  std::array<std::string_view, 4> parameters{};
  bool open = false;  ///< takes any arguments (map, select …)

  std::size_t capacity() const;
  std::optional<std::size_t> find(std::string_view parameter) const;
};

/// nullptr when there is none.
const signature* find_filter(std::string_view name);
const signature* find_test(std::string_view name);
const signature* find_method(std::string_view name);
const signature* find_function(std::string_view name);

}  // namespace tandem::text::jinja
