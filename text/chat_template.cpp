#include "text/chat_template.hpp"

#include <algorithm>
#include <exception>
#include <string>

#include "config/limits.hpp"
#include "text/jinja/evaluator.hpp"
#include "text/jinja/json_text.hpp"
#include "text/jinja/parser.hpp"
#include "text/utf8.hpp"

namespace tandem::text {

using jinja::evaluator;
using jinja::marked_text;
using jinja::template_failure;
using jinja::value;

struct chat_template::impl {
  std::string source;
  jinja::block program;
};

namespace {

tl::unexpected<error> explain(const template_failure& failure, bool parsing) {
  if (failure.raised_by_template) return fail(failure.code, failure.message, "messages");
  std::string where = "The chat template";
  if (failure.line > 0) where += ", line " + std::to_string(failure.line);
  const char* const advice = parsing ? "; use another template." : "; check the messages, or use another template.";
  return fail(failure.code, where + ": " + failure.message + advice, parsing ? "chat_template" : "messages");
}

// Runs what may throw; nothing leaves as an exception.
template <class Result, class Work>
Result guarded(bool parsing, Work work) {
  try {
    return work();
  } catch (const template_failure& failure) {
    return explain(failure, parsing);
  } catch (const std::exception& failure) {
    return explain({error_code::too_large, 0, failure.what(), false}, parsing);
  }
}

value read_messages(const chat_prompt& chat, jinja::budget& spent) {
  value messages = jinja::value_from_json(chat.messages_json, "the list of messages", spent);
  if (!messages.is_sequence()) jinja::fail_render("the messages are not a list");
  for (const value& message : messages.items()) {
    if (!message.is_dict()) jinja::fail_render("a message is not an object");
  }
  return messages;
}

void define_arguments(evaluator& run, const value& kwargs) {
  static constexpr std::string_view kOwn[] = {"messages", "tools", "add_generation_prompt"};
  if (!kwargs.is_dict()) jinja::fail_render("chat_template_kwargs is not an object");
  for (const auto& [key, item] : kwargs.dict().entries) {
    if (std::find(std::begin(kOwn), std::end(kOwn), key.view()) != std::end(kOwn)) {
      jinja::fail_render("chat_template_kwargs may not set '" + std::string(key.view()) + "'");
    }
    run.define(key.view(), item);
  }
}

std::string last_text(const value& messages, jinja::budget& spent) {
  if (messages.items().empty()) jinja::fail_render("there is no final message to continue");
  value content = jinja::attribute_of(messages.items().back(), "content", spent);
  if (content.is_sequence()) {  // parts: the last one with text
    for (auto part = content.items().rbegin(); part != content.items().rend(); ++part) {
      const value text = part->is_dict() ? jinja::attribute_of(*part, "text", spent) : value();
      if (text.is_string()) return std::string(text.view());
    }
  }
  if (!content.is_string()) jinja::fail_render("the final message has no text to continue");
  return std::string(content.view());
}

// Cuts behind the final message's text, as Hugging Face's continue_final_message: what the template closes it with
// goes.
marked_text cut_behind(const marked_text& rendered, std::string_view message) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const std::size_t first = std::min(message.find_first_not_of(kSpace), message.size());
  message.remove_prefix(first);
  const std::string_view stripped = message.substr(0, message.find_last_not_of(kSpace) + 1);
  const std::size_t found = rendered.view().rfind(stripped);
  if (found == std::string_view::npos) jinja::fail_render("the final message does not appear in what it writes");
  const bool keeps_space = rendered.view().substr(found, message.size()) == message;
  return rendered.slice(0, found + (keeps_space ? message.size() : stripped.size()));
}

}  // namespace

chat_template::chat_template(std::unique_ptr<const impl> state) : impl_(std::move(state)) {}
chat_template::chat_template(chat_template&&) noexcept = default;
chat_template& chat_template::operator=(chat_template&&) noexcept = default;
chat_template::~chat_template() = default;

std::string_view chat_template::source() const {
  return impl_->source;
}

result<chat_template> chat_template::parse(std::string_view source) {
  if (source.size() > limits::kMaxTemplateBytes) {
    return fail(error_code::too_large, "The chat template is larger than a template may be.", "chat_template");
  }
  if (!is_valid_utf8(source)) {
    return fail(error_code::corrupt, "The chat template is not valid UTF-8; use another template.", "chat_template");
  }
  return guarded<result<chat_template>>(true, [&]() -> result<chat_template> {
    auto state = std::make_unique<impl>();
    state->source = source;
    state->program = jinja::parser(source).parse();
    return chat_template(std::move(state));
  });
}

result<prompt_text> chat_template::render(const chat_prompt& chat, const names& model) const {
  return guarded<result<prompt_text>>(false, [&]() -> result<prompt_text> {
    jinja::budget spent;
    const value messages = read_messages(chat, spent);
    const value tools =
        chat.tools_json.empty() ? value::none() : jinja::value_from_json(chat.tools_json, "the list of tools", spent);
    const value kwargs = chat.kwargs_json.empty()
                             ? value::dict({}, &spent)
                             : jinja::value_from_json(chat.kwargs_json, "chat_template_kwargs", spent);
    evaluator run(spent);
    define_arguments(run, kwargs);
    run.define("messages", messages);
    run.define("tools", tools);
    run.define("add_generation_prompt", value::of(chat.add_generation_prompt && !chat.continue_final_message));
    run.define("bos_token", value::of(marked_text(model.bos_token, true), &spent));
    run.define("eos_token", value::of(marked_text(model.eos_token, true), &spent));
    marked_text rendered = run.run(impl_->program);
    if (chat.continue_final_message) rendered = cut_behind(rendered, last_text(messages, spent));
    prompt_text prompt;
    prompt.trusted = rendered.trusted_ranges();
    prompt.text = std::move(rendered).take_text();
    return prompt;
  });
}

}  // namespace tandem::text
