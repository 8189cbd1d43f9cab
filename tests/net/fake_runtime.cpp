#include "tests/net/fake_runtime.hpp"

#include <chrono>

#include "core/assert.hpp"

namespace tandem::net::test {
namespace {

std::string utf8(int code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// GPT-2's byte alphabet: printable bytes stand for themselves, the others for code points from 256 on.
std::string byte_piece(int byte, int& next) {
  const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  return utf8(printable ? byte : next++);
}

}  // namespace

std::shared_ptr<const text::tokenizer> byte_tokenizer() {
  text::tokenizer_spec spec;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(byte_piece(byte, next));
  spec.kinds.assign(256, text::token_kind::normal);
  for (const char* name : {"<|end|>", "<|mark|>"}) {
    spec.pieces.emplace_back(name);
    spec.kinds.push_back(text::token_kind::control);
  }
  spec.eos = 256;
  spec.end_tokens = {256};
  auto made = text::tokenizer::make(std::move(spec));
  TANDEM_ASSERT(made.has_value());
  return *made;
}

fake_runtime::fake_runtime() {
  chosen.model_name = "fake-model";
  chosen.max_model_len = 1024;
  state.ready = true;
  device_.vocabulary_size = 258;
  device_.draft_context_limit = 1024;
  thread_ = std::thread([this] { run(); });
}

fake_runtime::~fake_runtime() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void fake_runtime::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

void fake_runtime::enqueue(std::function<void()> task) {
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

std::vector<token_id> fake_runtime::tokens_of(const prompt_source& prompt) const {
  if (const auto* ids = std::get_if<std::vector<token_id>>(&prompt)) return *ids;
  const auto* text = std::get_if<prompt_text>(&prompt);
  const std::string& bytes = text != nullptr ? text->text : std::get<chat_prompt>(prompt).messages_json;
  std::vector<token_id> tokens;
  for (const char c : bytes) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

request_id fake_runtime::submit(generation_request request, std::shared_ptr<outlet> client) {
  std::lock_guard lock(mutex_);
  const request_id id{++last_id_};
  submitted_.push_back(request);
  changed_.notify_all();
  if (hold_answers) {
    unanswered_.emplace(id.value, std::move(client));
    return id;
  }
  if (refuse) {
    enqueue([id, client, reason = *refuse] { client->answer({id, reason, nullptr}); });
    return id;
  }
  auto prompt = std::make_shared<const std::vector<token_id>>(tokens_of(request.prompt));
  live entry{request.n, prompt->size(), client, std::move(request)};
  enqueue([id, client, prompt] { client->answer({id, std::nullopt, prompt}); });
  if (hold) {
    held_.emplace(id.value, std::move(entry));
  } else {
    enqueue([this, id, entry = std::move(entry)] { play_script(id, entry); });
  }
  return id;
}

void fake_runtime::release() {
  std::lock_guard lock(mutex_);
  for (auto& [id, entry] : held_) {
    enqueue([this, id = request_id{id}, entry = std::move(entry)] { play_script(id, entry); });
  }
  held_.clear();
}

void fake_runtime::play_script(request_id id, const live& entry) {
  std::vector<scripted_piece> pieces;
  change([&] { pieces = script; });
  play(id, entry, pieces);
}

// One post per piece, as one step would make it.
void fake_runtime::play(request_id id, const live& entry, const std::vector<scripted_piece>& pieces) {
  std::int32_t tokens = 0;
  for (const scripted_piece& piece : pieces) {
    std::vector<generation_event> events;
    for (std::int32_t choice = 0; choice < entry.n; ++choice) {
      events.push_back(event_of(id, entry, choice, piece, tokens));
    }
    tokens += static_cast<std::int32_t>(piece.text.size());
    entry.client->post(std::move(events));
  }
}

generation_event fake_runtime::event_of(request_id id, const live& entry, std::int32_t choice,
                                        const scripted_piece& piece, std::int32_t so_far) const {
  generation_event event;
  event.id = id;
  event.choice = choice;
  event.text = piece.text;
  for (const char c : piece.text) {
    const token_id token = static_cast<unsigned char>(c);
    event.tokens.push_back(token);
    if (entry.request.logprobs.top >= 0) event.logprobs.push_back({token, -0.5F, 1, {{token, -0.5F}}});
  }
  event.accepted.assign(event.tokens.size(), 0);
  for (std::size_t i = 0; i < piece.drafted.size(); ++i) event.accepted[i] = piece.drafted[i] == '1';
  if (!piece.ends) return event;
  event.end = finish{};
  event.end->reason = piece.reason;
  event.end->message = failure_message;
  event.stats.prompt_tokens = static_cast<std::int32_t>(entry.prompt_tokens);
  event.stats.cached_tokens = 2;
  event.stats.completion_tokens = so_far + static_cast<std::int32_t>(piece.text.size());
  event.stats.steps = 4;
  event.stats.draft_tokens = 8;
  event.stats.accepted_tokens = 6;
  return event;
}

void fake_runtime::cancel(request_id id) {
  std::lock_guard lock(mutex_);
  cancelled_.insert(id.value);
  if (auto waiting = unanswered_.extract(id.value)) {
    enqueue([id, client = std::move(waiting.mapped())] {
      client->answer({id, error{error_code::cancelled, "The request was cancelled before it started.", {}}, nullptr});
    });
  }
  const auto found = held_.find(id.value);
  if (found != held_.end()) {
    enqueue([this, id, entry = std::move(found->second), pieces = on_cancel] { play(id, entry, pieces); });
    held_.erase(found);
  }
  changed_.notify_all();
}

void fake_runtime::encode(prompt_source prompt, std::function<void(result<std::vector<token_id>>)> answer) {
  std::lock_guard lock(mutex_);
  enqueue([tokens = tokens_of(prompt), answer] { answer(tokens); });
}

runtime_status fake_runtime::status() const {
  std::lock_guard lock(mutex_);
  return state;
}

void fake_runtime::count_rejected(const std::string&) {
  std::lock_guard lock(mutex_);
  ++rejected_;
}

void fake_runtime::count_websocket(int delta) {
  std::lock_guard lock(mutex_);
  websockets_ += delta;
  changed_.notify_all();
}

std::vector<generation_request> fake_runtime::submitted() const {
  std::lock_guard lock(mutex_);
  return submitted_;
}

std::set<std::uint64_t> fake_runtime::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

bool fake_runtime::wait_for(const std::function<bool()>& reached) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), reached);
}

bool fake_runtime::wait_for_cancelled(std::size_t count) const {
  return wait_for([&] { return cancelled_.size() >= count; });
}

bool fake_runtime::wait_for_submitted(std::size_t count) const {
  return wait_for([&] { return submitted_.size() >= count; });
}

int fake_runtime::websockets() const {
  std::lock_guard lock(mutex_);
  return websockets_;
}

int fake_runtime::rejected() const {
  std::lock_guard lock(mutex_);
  return rejected_;
}

}  // namespace tandem::net::test
