#pragma once
/// From options to a running engine: model file → tokenizer → device → actors. Shared by every command and the library.

#include <functional>
#include <memory>
#include <string>

#include "actors/runtime.hpp"
#include "config/options.hpp"
#include "core/result.hpp"
#include "gpu/device.hpp"
#include "gpu/host/host_device.hpp"
#include "model/model.hpp"

namespace tandem::engine {

/// Everything but the actors: what make_runtime() takes.
struct loaded_parts {
  runtime_options options;
  runtime_parts parts;
};

/// Where the loader reports what it found; called on the caller's thread. May be empty.
using load_log = std::function<void(const std::string& line)>;

/// Resolves the names, opens the files, packs the weights, checks that the draft speaks the target's vocabulary, lowers
/// max_model_len to what the KV cache can hold (with a log line, never below what was asked for explicitly).
/// Errors: those of open_model, tokenizer::make, make_host_device; invalid_argument naming the flag.
/// `drafts`: the program's own draft source, used unless the options name another method; null: it has none.
result<loaded_parts> load_parts(const config::engine_options& options, const load_log& log,
                                std::shared_ptr<custom_drafts> drafts = nullptr);

/// load_parts and the actors.
result<std::unique_ptr<runtime>> start_engine(const config::engine_options& options, const load_log& log,
                                              std::shared_ptr<custom_drafts> drafts = nullptr);

/// What a device is made for, from what the user asked for.
gpu::host_options device_options(const config::engine_options& options);

/// A model with its tokenizer and chat template, without weights in memory: for inspect and tokenize.
struct opened_model {
  std::shared_ptr<const model::model> model;
  std::shared_ptr<const text::tokenizer> tokenizer;
};
result<opened_model> open_with_tokenizer(const std::string& name);

/// The template of `file` when given, else the tokenizer's own; null when there is none.
result<std::shared_ptr<const text::chat_template>> load_chat_template(const std::string& file,
                                                                      const text::tokenizer_spec& spec);

/// The name under which a model is served: a known name, or the file's without folder and ending.
std::string served_name(const std::string& model);

}  // namespace tandem::engine
