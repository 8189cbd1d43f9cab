/// embed_plain MODEL PROMPT [MAX_TOKENS]: prints the continuation while it comes, then its token ids.

#include <cstdlib>
#include <iostream>
#include <tandem/engine.hpp>

namespace {

void print_stream(tandem::Engine& engine, const tandem::Request& request) {
  tandem::Stream stream = engine.stream(request);
  for (const tandem::Event& event : stream) std::cout << event.text << std::flush;
  std::cout << '\n';
}

void print_ids(const tandem::Output& output) {
  std::cout << "token ids:";
  for (const int id : output.choices.front().token_ids) std::cout << ' ' << id;
  std::cout << '\n';
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::cerr << "usage: embed_plain MODEL PROMPT [MAX_TOKENS]\n";
    return 2;
  }
  try {
    tandem::Options options;
    options.model = arguments[1];
    tandem::Engine engine(options);
    tandem::Request request;
    request.prompt = arguments[2];
    request.sampling.temperature = 0;
    request.sampling.max_tokens = argument_count > 3 ? std::atoi(arguments[3]) : 30;
    print_stream(engine, request);
    std::future<tandem::Output> again = engine.submit(request);  // the same request is the same answer
    print_ids(again.get());
    return 0;
  } catch (const tandem::Error& problem) {
    std::cerr << "embed_plain: " << problem.what() << '\n';
    return 1;
  }
}
