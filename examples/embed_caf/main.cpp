/// embed_caf MODEL PROMPT [MAX_TOKENS]: a service's own actor asks the engine's actor, once for the whole answer and
/// once piece by piece, then stops it.

#include <caf/all.hpp>
#include <cstdlib>
#include <iostream>
#include <tandem/actor.hpp>

namespace {

/// The service's actor: prints the answer, then streams it, then ends the engine and itself.
caf::behavior service(caf::event_based_actor* self, const tandem::EngineActor& engine, const tandem::Request& request) {
  self->monitor(engine);
  self->set_down_handler([self](const caf::down_msg&) {
    std::cout << "the engine has ended\n";
    self->quit();
  });
  const auto fail = [self, engine](const caf::error& problem) {
    std::cout << "failed: " << self->system().render(problem) << '\n';
    self->send_exit(engine, caf::exit_reason::user_shutdown);
  };
  self->request(engine, caf::infinite, request)
      .then(
          [=](const tandem::Output& output) {
            std::cout << "answer: " << output.choices.front().text << '\n' << "pieces: " << std::flush;
            self->request(engine, caf::infinite, tandem::stream_atom::value, request, caf::actor_cast<caf::actor>(self))
                .then([](std::uint64_t) {}, fail);
          },
          fail);
  return {[=](std::uint64_t, const tandem::Event& event) {
    std::cout << event.text << std::flush;
    if (event.finish_reason.empty()) return;
    std::cout << '\n' << "finish_reason: " << event.finish_reason << '\n';
    self->send_exit(engine, caf::exit_reason::user_shutdown);
  }};
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::cerr << "usage: embed_caf MODEL PROMPT [MAX_TOKENS]\n";
    return 2;
  }
  tandem::Request request;
  request.prompt = arguments[2];
  request.sampling.temperature = 0;
  request.sampling.max_tokens = argument_count > 3 ? std::atoi(arguments[3]) : 30;
  caf::actor_system_config config;
  tandem::add_message_types(config);
  caf::actor_system system(config);
  try {
    tandem::Options options;
    options.model = arguments[1];
    system.spawn(service, tandem::spawn_engine(system, options), request);
  } catch (const tandem::Error& problem) {
    std::cerr << "embed_caf: " << problem.what() << '\n';
    return 1;
  }
  system.await_all_actors_done();
  return 0;
}
