#include "net/server.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/assert.hpp"
#include "net/byte_stream.hpp"
#include "net/http_session.hpp"
#include "net/io_lane.hpp"
#include "net/listener.hpp"
#include "net/tls_context.hpp"

namespace tandem::net {
namespace {

namespace asio = boost::asio;
using work_guard = asio::executor_work_guard<asio::io_context::executor_type>;

bool has_special_tags(const text::tokenizer& tokenizer, tool_call_format format) {
  const token_id tag = format == tool_call_format::hermes ? tokenizer.find("<tool_call>") : kNoToken;
  return tag != kNoToken && tokenizer.is_special(tag);
}

request_facts facts_of(const runtime& engine, const server_options& options) {
  const runtime_options& chosen = engine.options();
  request_facts facts;
  facts.model_names = options.served_names;
  if (facts.model_names.empty()) facts.model_names.push_back(chosen.model_name);
  facts.vocabulary = engine.device().vocabulary_size > 0 ? engine.device().vocabulary_size : engine.tokenizer().size();
  facts.max_model_len = chosen.max_model_len;
  facts.max_draft_tokens = chosen.max_draft_tokens;
  facts.drafters = engine.draft_methods();
  facts.has_chat_template = engine.has_chat_template();
  facts.tool_calls = options.tool_calls.value_or(format_of_template(engine.chat_template_source()));
  facts.special_tool_tags = has_special_tags(engine.tokenizer(), facts.tool_calls);
  return facts;
}

// What the machine and the operator call this server is no name of a stranger's.
void add_own_names(server_options& options) {
  boost::system::error_code ignored;
  options.cross_origin.hosts.push_back(options.host);
  if (std::string name = asio::ip::host_name(ignored); !name.empty())
    options.cross_origin.hosts.push_back(std::move(name));
}

}  // namespace

struct server::impl {
  explicit impl(server_options options) : edge(std::move(options)) {}

  result<void> bind();
  void run();
  void accept(asio::ip::tcp::socket socket);
  std::unique_ptr<byte_stream> stream_over(asio::ip::tcp::socket socket) const;
  result<void> load_certificate();
  template <class Task>
  void on_every_lane(const Task& task);
  bool wait_until_empty(std::chrono::milliseconds bound);
  void join();

  edge_state edge;
  std::vector<std::unique_ptr<io_lane>> lanes;
  std::vector<work_guard> guards;
  std::vector<std::thread> threads;
  std::shared_ptr<listener> door;
  std::string shown_host;
  std::uint16_t port = 0;
  std::size_t next_lane = 0;                // on the listener's lane
  std::shared_ptr<asio::ssl::context> tls;  // of the next connection, on the listener's lane; null: in the clear
  bool stopped = false;
};

result<void> server::impl::bind() {
  const std::size_t threads_wanted = edge.options.io_threads;
  if (threads_wanted < 1 || threads_wanted > limits::kMaxIoThreads) {
    return fail(error_code::invalid_argument, fmt::format("io_threads must be 1 to {}.", limits::kMaxIoThreads));
  }
  add_own_names(edge.options);
  for (std::size_t i = 0; i < threads_wanted; ++i) lanes.push_back(std::make_unique<io_lane>(edge));
  auto acceptor = bind_port(lanes.front()->context, edge.options.host, edge.options.port);
  if (!acceptor) return tl::unexpected<error>(acceptor.error());
  const auto local = acceptor->local_endpoint();
  port = local.port();
  shown_host = local.address().is_v6() ? fmt::format("[{}]", local.address().to_string()) : local.address().to_string();
  if (auto loaded = load_certificate(); !loaded) return loaded;
  door = std::make_shared<listener>(
      std::move(*acceptor),
      listener::events{[this]() -> asio::io_context& { return lanes[next_lane % lanes.size()]->context; },
                       [this](asio::ip::tcp::socket socket) { accept(std::move(socket)); }});
  return {};
}

void server::impl::run() {
  door->start();
  for (const auto& lane : lanes) {
    guards.emplace_back(lane->context.get_executor());
    threads.emplace_back([&context = lane->context] { context.run(); });
  }
}

void server::impl::accept(asio::ip::tcp::socket socket) {
  io_lane& lane = *lanes[next_lane++ % lanes.size()];
  if (edge.connections >= edge.options.max_connections) return;  // closed by leaving
  asio::post(lane.context, [&lane, stream = stream_over(std::move(socket))]() mutable {
    std::make_shared<http_session>(lane, std::move(stream))->start();
  });
}

std::unique_ptr<byte_stream> server::impl::stream_over(asio::ip::tcp::socket socket) const {
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  return tls ? make_tls_stream(std::move(socket), tls) : make_plain_stream(std::move(socket));
}

result<void> server::impl::load_certificate() {
  if (!edge.options.tls) return {};
  auto loaded = load_tls(*edge.options.tls);
  if (!loaded) return tl::unexpected<error>(loaded.error());
  asio::post(lanes.front()->context, [this, fresh = std::move(*loaded)] { tls = fresh; });
  return {};
}

template <class Task>
void server::impl::on_every_lane(const Task& task) {
  for (const auto& lane : lanes) asio::post(lane->context, [&lane = *lane, task] { task(lane); });
}

bool server::impl::wait_until_empty(std::chrono::milliseconds bound) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (edge.connections > 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void server::impl::join() {
  for (const auto& lane : lanes) lane->door->close();
  guards.clear();
  for (const auto& lane : lanes) lane->context.stop();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
}

namespace {

std::vector<std::shared_ptr<connection>> connections_of(const io_lane& lane) {
  std::vector<std::shared_ptr<connection>> open;
  for (const auto& [raw, weak] : lane.connections) {
    if (auto strong = weak.lock()) open.push_back(std::move(strong));
  }
  return open;
}

void finish_all(io_lane& lane) {
  lane.stopping = true;
  for (const auto& each : connections_of(lane)) each->finish();
}

void abort_all(io_lane& lane) {
  for (const auto& each : connections_of(lane)) each->abort();
}

}  // namespace

result<std::unique_ptr<server>> server::bind(server_options options) {
  auto state = std::make_unique<impl>(std::move(options));
  if (auto bound = state->bind(); !bound) return tl::unexpected<error>(bound.error());
  state->run();
  return std::unique_ptr<server>(new server(std::move(state)));
}

server::server(std::unique_ptr<impl> state) : impl_(std::move(state)) {}
server::~server() {
  stop(std::chrono::milliseconds(0));
}

std::uint16_t server::port() const {
  return impl_->port;
}
std::string server::url() const {
  return fmt::format("{}://{}:{}", impl_->edge.options.tls ? "https" : "http", impl_->shown_host, impl_->port);
}

result<void> server::reload_certificate() {
  return impl_->load_certificate();
}

void server::serve(std::shared_ptr<runtime> engine) {
  TANDEM_ASSERT(engine != nullptr);
  const request_facts facts = facts_of(*engine, impl_->edge.options);
  impl_->on_every_lane([engine, facts](io_lane& lane) {
    lane.facts = facts;
    lane.engine = engine;
  });
}

void server::stop_accepting() {
  asio::post(impl_->lanes.front()->context, [door = impl_->door] { door->stop(); });
  impl_->on_every_lane(finish_all);
}

void server::stop(std::chrono::milliseconds bound) {
  if (std::exchange(impl_->stopped, true)) return;
  stop_accepting();
  if (!impl_->wait_until_empty(bound)) {
    impl_->on_every_lane(abort_all);
    impl_->wait_until_empty(limits::kShutdownGrace);
  }
  impl_->join();
}

}  // namespace tandem::net
