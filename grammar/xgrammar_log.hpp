#pragma once
/// What XGrammar says while it works, on this thread.

#include <string>
#include <vector>

namespace tandem {

/// While it lives, keeps the warnings of its thread; without one they are dropped. Not nested.
class xgrammar_warnings {
 public:
  xgrammar_warnings();
  ~xgrammar_warnings();
  xgrammar_warnings(const xgrammar_warnings&) = delete;
  xgrammar_warnings& operator=(const xgrammar_warnings&) = delete;

  const std::vector<std::string>& all() const { return texts_; }
  void add(const std::string& text);

 private:
  std::vector<std::string> texts_;
};

}  // namespace tandem
