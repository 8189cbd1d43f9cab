#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "config/edit_distance.hpp"
#include "config/flags.hpp"
#include "config/speculative_config.hpp"
#include "tests/support/temporary_folder.hpp"

namespace tandem::config {
namespace {

/// One command line, parsed as `serve` parses it. `problem` is what the user would read.
struct parsed {
  options values;
  std::string problem;
};

parsed parse(const std::string& line) {
  parsed outcome;
  CLI::App command{"test", "serve"};
  add_server_flags(command, outcome.values);
  add_engine_flags(command, outcome.values);
  add_common_flags(command, outcome.values);
  try {
    command.parse(line, false);
  } catch (const CLI::ParseError& problem) {
    outcome.problem = problem.what();
    return outcome;
  }
  if (const auto finished = finish_options(command, outcome.values); !finished)
    outcome.problem = finished.error().message;
  return outcome;
}

bool says(const parsed& outcome, const std::string& part) {
  return outcome.problem.find(part) != std::string::npos;
}

class config_file {
 public:
  explicit config_file(const std::string& yaml) { std::ofstream(path()) << yaml; }
  std::string path() const { return (folder_ / "tandem.yaml").string(); }

 private:
  test::temporary_folder folder_;
};

TEST(options, defaults_are_those_of_the_documentation) {
  const parsed outcome = parse("M");
  EXPECT_EQ(outcome.problem, "");
  EXPECT_EQ(outcome.values.engine.model, "M");
  EXPECT_EQ(outcome.values.server.host, "127.0.0.1");
  EXPECT_EQ(outcome.values.server.port, 8000);
  EXPECT_EQ(outcome.values.engine.max_num_seqs, 256);
  EXPECT_EQ(outcome.values.engine.block_size, 16);
  EXPECT_TRUE(outcome.values.engine.prefix_caching);
  EXPECT_FALSE(outcome.values.engine.speculation.method.has_value());
}

TEST(options, the_model_may_be_a_flag) {
  EXPECT_EQ(parse("--model M --port 9").values.engine.model, "M");
}

TEST(options, a_device_is_chosen_when_the_engine_starts_not_when_flags_are_read) {
  EXPECT_EQ(parse("M").values.engine.device, device_kind::automatic);
  EXPECT_EQ(parse("M --device cuda").values.engine.device, device_kind::cuda);
  EXPECT_TRUE(says(parse("M --device tpu"), "--device"));
}

TEST(options, quantization_is_none_or_int8) {
  EXPECT_EQ(parse("M").values.engine.quantization, weight_quantization::none);
  EXPECT_EQ(parse("M --quantization none").values.engine.quantization, weight_quantization::none);
  EXPECT_EQ(parse("M --quantization int8").values.engine.quantization, weight_quantization::int8);
  EXPECT_TRUE(says(parse("M --quantization awq"), "not one of int8|none"));
}

TEST(options, a_flag_that_repeats_does_not_swallow_the_model_behind_it) {
  const parsed outcome = parse("--served-model-name x --served-model-name y --api-key k M");
  EXPECT_EQ(outcome.problem, "");
  EXPECT_EQ(outcome.values.engine.model, "M");
  EXPECT_EQ(outcome.values.server.served_model_names, (std::vector<std::string>{"x", "y"}));
}

TEST(options, every_flag_reaches_its_field) {
  const parsed outcome = parse(
      "M --host 0.0.0.0 --port 0 --api-key a --api-key b --served-model-name x --max-model-len 100 --max-num-seqs 3 "
      "--max-num-batched-tokens 64 --block-size 8 --num-kv-blocks 10 --kv-cache-memory 2GiB --kv-cache-dtype fp32 "
      "--no-enable-prefix-caching --no-enable-chunked-prefill --scheduling-policy priority --max-num-queued-reqs 5 "
      "--max-num-queued-tokens 50 --device cpu --dtype fp32 --threads 2 --draft-model D --num-speculative-tokens 4 "
      "--seed 7 --stream-interval 2 --shutdown-timeout 3 --log-level debug --log-format json --log-prompts "
      "--use-v2-block-manager");
  ASSERT_EQ(outcome.problem, "");
  const engine_options& engine = outcome.values.engine;
  EXPECT_EQ(outcome.values.server.api_keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(engine.kv_cache_memory_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(engine.dtype, weight_dtype::fp32);
  EXPECT_EQ(engine.kv_dtype, kv_cache_dtype::fp32);
  EXPECT_FALSE(engine.prefix_caching);
  EXPECT_FALSE(engine.chunked_prefill);
  EXPECT_TRUE(engine.priority_scheduling);
  EXPECT_EQ(engine.max_queued_requests, 5u);
  EXPECT_EQ(engine.speculation.draft_model, "D");
  EXPECT_EQ(engine.speculation.num_speculative_tokens, 4);
  EXPECT_EQ(engine.seed, 7u);
  EXPECT_TRUE(outcome.values.logging.json);
}

TEST(options, flags_of_the_server_reach_their_fields) {
  const parsed outcome = parse(
      "M --ssl-certfile c --ssl-keyfile k --ssl-ca-certs a --ssl-cert-reqs 1 --api-key x --max-requests-per-key 4 "
      "--allowed-origins '[\"https://a\",\"https://b\"]' --allowed-methods POST --allow-credentials "
      "--allowed-hosts '[\"a.example\"]' --max-body-mib 3 "
      "--tool-call-parser llama3_json --enable-auto-tool-choice");
  ASSERT_EQ(outcome.problem, "");
  const server_options& server = outcome.values.server;
  EXPECT_EQ(server.tls.certificate_file + server.tls.key_file + server.tls.client_ca_file, "cka");
  EXPECT_EQ(server.tls.client_certificates, 1);
  EXPECT_EQ(server.max_requests_per_key, 4);
  EXPECT_EQ(server.cross_origin.origins, (std::vector<std::string>{"https://a", "https://b"}));
  EXPECT_EQ(server.cross_origin.methods, std::vector<std::string>{"POST"});
  EXPECT_TRUE(server.cross_origin.headers.empty());
  EXPECT_TRUE(server.cross_origin.credentials);
  EXPECT_EQ(server.cross_origin.hosts, std::vector<std::string>{"a.example"});
  EXPECT_EQ(server.max_body_mib, 3);
  EXPECT_EQ(server.tool_calls, tool_call_parser::llama3_json);
  EXPECT_EQ(parse("M").values.server.tool_calls, tool_call_parser::automatic);
}

TEST(options, lists_of_origins_come_from_a_file_too) {
  const config_file file("model: M\nallowed-origins: [\"https://a\", \"https://b\"]\n");
  EXPECT_EQ(parse("--config " + file.path()).values.server.cross_origin.origins,
            (std::vector<std::string>{"https://a", "https://b"}));
}

TEST(options, flags_of_the_server_that_need_others_are_refused_alone) {
  EXPECT_TRUE(says(parse("M --ssl-keyfile k"), "--ssl-keyfile needs --ssl-certfile."));
  EXPECT_TRUE(says(parse("M --ssl-ca-certs a"), "--ssl-ca-certs needs --ssl-certfile."));
  EXPECT_TRUE(says(parse("M --ssl-certfile c --ssl-cert-reqs 2"), "needs --ssl-ca-certs."));
  EXPECT_TRUE(says(parse("M --max-requests-per-key 1"), "needs --api-key."));
  EXPECT_TRUE(says(parse("M --allowed-origins [1]"), "--allowed-origins"));
  EXPECT_TRUE(says(parse("M --allowed-origins '[\"a\"'"), "JSON list"));
}

TEST(options, the_kv_cache_has_four_formats) {
  EXPECT_EQ(parse("M").values.engine.kv_dtype, kv_cache_dtype::automatic);
  EXPECT_EQ(parse("M --kv-cache-dtype bf16").values.engine.kv_dtype, kv_cache_dtype::bf16);
  EXPECT_EQ(parse("M --kv-cache-dtype fp32").values.engine.kv_dtype, kv_cache_dtype::fp32);
  EXPECT_EQ(parse("M --kv-cache-dtype int8").values.engine.kv_dtype, kv_cache_dtype::int8);
}

TEST(options, a_wrong_value_names_the_flag) {
  for (const std::string flag :
       {"--port 70000", "--port x", "--max-num-seqs 0", "--block-size 0", "--dtype int4", "--kv-cache-dtype int4",
        "--scheduling-policy lifo", "--threads -1", "--kv-cache-memory lots", "--log-level loud"})
    EXPECT_TRUE(says(parse("M " + flag), flag.substr(0, flag.find(' ')))) << flag << ": " << parse("M " + flag).problem;
}

TEST(options, flags_of_later_versions_are_refused_with_a_reason) {
  EXPECT_TRUE(says(parse("M --tensor-parallel-size 2"), "only 1 is offered yet"));
  EXPECT_TRUE(says(parse("M --gpu-memory-utilization 0.5"), "--kv-cache-memory"));
  EXPECT_TRUE(says(parse("M --trace t"), "not offered yet"));
  EXPECT_EQ(parse("M --tensor-parallel-size 1").problem, "");
}

TEST(options, a_file_gives_what_flags_do_not) {
  const config_file file(
      "model: M\nport: 9000\nmax_num_seqs: 12\nenable-prefix-caching: false\napi-key: [a, b]\n"
      "speculative-config:\n  method: ngram\n  num_speculative_tokens: 3\n");
  const parsed outcome = parse("--max-num-seqs 34 --config " + file.path());
  ASSERT_EQ(outcome.problem, "");
  EXPECT_EQ(outcome.values.engine.model, "M");
  EXPECT_EQ(outcome.values.server.port, 9000);
  EXPECT_EQ(outcome.values.engine.max_num_seqs, 34) << "flags win";
  EXPECT_FALSE(outcome.values.engine.prefix_caching);
  EXPECT_EQ(outcome.values.server.api_keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(outcome.values.engine.speculation.method, draft_method::ngram);
  EXPECT_EQ(outcome.values.engine.speculation.num_speculative_tokens, 3);
}

TEST(options, a_short_form_given_as_a_flag_wins_over_the_object_of_a_file) {
  const config_file file("speculative-config: {method: ngram, num_speculative_tokens: 3}\n");
  EXPECT_EQ(
      parse("M --num-speculative-tokens 7 --config " + file.path()).values.engine.speculation.num_speculative_tokens,
      7);
}

TEST(options, an_unknown_key_of_a_file_is_an_error_with_line_and_suggestion) {
  const config_file file("port: 9\nmax-num-seq: 12\n");
  const parsed outcome = parse("M --config " + file.path());
  EXPECT_TRUE(says(outcome, "line 2")) << outcome.problem;
  EXPECT_TRUE(says(outcome, "did you mean \"max-num-seqs\"?")) << outcome.problem;
}

TEST(options, a_file_whose_aliases_multiply_is_refused_at_once) {
  std::string yaml = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 8; ++j) yaml += ", " + before;
    yaml += "]\n";
  }
  const config_file file(yaml);
  EXPECT_TRUE(says(parse("M --config " + file.path()), "too many values"));
}

TEST(options, a_file_that_is_missing_or_broken_is_an_error_that_names_it) {
  EXPECT_TRUE(says(parse("M --config /nowhere/x.yaml"), "/nowhere/x.yaml"));
  const config_file broken("port: [1\n");
  EXPECT_TRUE(says(parse("M --config " + broken.path()), broken.path()));
  const config_file list("- a\n- b\n");
  EXPECT_TRUE(says(parse("M --config " + list.path()), "must be a map"));
  const config_file bad_value("port: high\n");
  EXPECT_TRUE(says(parse("M --config " + bad_value.path()), "port"));
}

TEST(options, heads_come_by_their_flag_or_in_vllms_words) {
  EXPECT_EQ(parse("M --draft-heads H").values.engine.speculation.draft_heads, "H");
  for (const auto& [name, method] :
       {std::pair{"medusa", draft_method::medusa}, {"eagle", draft_method::eagle}, {"eagle3", draft_method::eagle}}) {
    const std::string config = std::string("{\"model\":\"H\",\"method\":\"") + name + "\"}";
    const parsed outcome = parse("M --draft-model D --speculative-config " + config);
    ASSERT_EQ(outcome.problem, "");
    EXPECT_EQ(outcome.values.engine.speculation.method, method);
    EXPECT_EQ(outcome.values.engine.speculation.draft_heads, "H");
    EXPECT_EQ(outcome.values.engine.speculation.draft_model, "D");
  }
  EXPECT_TRUE(says(parse("M --speculative-config {\"method\":\"eagle\"}"), "add --draft-heads FOLDER"));
}

TEST(speculative_config, every_key_is_read) {
  speculation_options target;
  const auto applied = apply_speculative_config(
      R"({"method": "draft_model", "model": "D", "num_speculative_tokens": 4, "adaptive": true, "prompt_lookup_min": 1,
          "prompt_lookup_max": 4, "sampling": "rejection", "disable_by_batch_size": 8, "draft_device": "auto"})",
      target);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(target.method, draft_method::draft_model);
  EXPECT_EQ(target.draft_model, "D");
  EXPECT_EQ(target.num_speculative_tokens, 4);
  EXPECT_EQ(target.prompt_lookup_max, 4);
  EXPECT_EQ(target.rule, acceptance_rule::rejection);
  EXPECT_EQ(target.disable_by_batch_size, 8);
}

TEST(speculative_config, the_source_that_learns_is_there_where_it_is_used_or_asked_for) {
  const auto read = [](const char* json) {
    speculation_options target;
    const auto applied = apply_speculative_config(json, target);
    EXPECT_TRUE(applied) << applied.error().message;
    return target;
  };
  EXPECT_TRUE(learns_from_outputs(read("{}")));
  EXPECT_FALSE(learns_from_outputs(read(R"({"num_speculative_tokens": 3})")));
  EXPECT_FALSE(learns_from_outputs(read(R"({"method": "none"})")));
  EXPECT_FALSE(learns_from_outputs(read(R"({"method": "ngram", "adaptive": true})")));
  EXPECT_FALSE(learns_from_outputs(read(R"({"adaptive": true, "suffix": false})")));
  EXPECT_TRUE(learns_from_outputs(read(R"({"adaptive": true})")));
  EXPECT_TRUE(learns_from_outputs(read(R"({"method": "suffix"})")));
  EXPECT_TRUE(learns_from_outputs(read(R"({"method": "ngram", "suffix": true})")));
  const speculation_options all = read(R"({"suffix_decoding_max_tree_depth": 16, "suffix_memory_mib": 7,
                                          "suffix_decoding_min_token_prob": 0.25})");
  EXPECT_EQ(all.suffix_longest_context, 16);
  EXPECT_EQ(all.suffix_mebibytes, 7);
  EXPECT_EQ(all.suffix_least_probability, 0.25);
}

TEST(speculative_config, an_error_names_the_key) {
  const auto problem = [](const char* json) {
    speculation_options target;
    const auto applied = apply_speculative_config(json, target);
    return applied ? std::string{} : applied.error().message;
  };
  EXPECT_NE(problem(R"({"num_speculative_token": 4})").find("did you mean \"num_speculative_tokens\"?"),
            std::string::npos);
  EXPECT_NE(problem(R"({"num_speculative_tokens": "4"})").find("num_speculative_tokens"), std::string::npos);
  EXPECT_NE(problem(R"({"num_speculative_tokens": 17})").find("from 0 to 16"), std::string::npos);
  EXPECT_NE(problem(R"({"prompt_lookup_min": 5, "prompt_lookup_max": 2})").find("prompt_lookup_min"),
            std::string::npos);
  EXPECT_NE(problem(R"({"suffix_decoding_min_token_prob": 2})").find("from 0 to 1"), std::string::npos);
  EXPECT_NE(problem(R"({"suffix_memory_mib": 0})").find("from 1 to 4096"), std::string::npos);
  EXPECT_NE(problem(R"({"suffix": "yes"})").find("\"suffix\" must be true or false"), std::string::npos);
  EXPECT_NE(problem("[]").find("one JSON object"), std::string::npos);
  EXPECT_NE(problem("{").find("one JSON object"), std::string::npos);
}

TEST(edit_distance, counts_typing_errors) {
  EXPECT_EQ(edit_distance("port", "port"), 0u);
  EXPECT_EQ(edit_distance("prot", "port"), 1u) << "two swapped letters are one error";
  EXPECT_EQ(edit_distance("", "port"), 4u);
  EXPECT_EQ(nearest_name("max-num-sqes", {"max-num-seqs", "port"}), "max-num-seqs");
  EXPECT_EQ(nearest_name("smollm2", {"port", "smollm2-135m"}), "smollm2-135m") << "a beginning says enough";
  EXPECT_EQ(nearest_name("completely-different", {"max-num-seqs", "port"}), "");
}

}  // namespace
}  // namespace tandem::config
