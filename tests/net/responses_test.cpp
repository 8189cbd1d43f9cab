// /v1/responses over HTTP.

#include <string>

#include "net/json_document.hpp"
#include "tests/net/edge.hpp"

namespace tandem::net::test {
namespace {

const std::string kBody = R"({"input":"hi","max_output_tokens":8})";
const std::string kStreamBody = R"({"input":"hi","max_output_tokens":8,"stream":true})";

/// The value of a string member, the first of that name in the text.
std::string member(const std::string& json, const std::string& name) {
  const std::string mark = "\"" + name + "\":\"";
  const std::size_t at = json.find(mark);
  if (at == std::string::npos) return {};
  return json.substr(at + mark.size(), json.find('"', at + mark.size()) - at - mark.size());
}

std::string field(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? "" : text.substr(at + mark.size(), text.find_first_of(",}", at) - at - mark.size());
}

class responses_edge : public edge {
 protected:
  raw_response post(const std::string& body, const std::string& path = "/v1/responses") {
    raw_client client(port());
    return client.request("POST", path, body);
  }
  raw_response get(const std::string& path, const std::string& method = "GET") {
    raw_client client(port());
    return client.request(method, path);
  }
  /// Chat messages of the last request, as the template gets them.
  std::string messages() { return std::get<chat_prompt>(runtime_->submitted().back().prompt).messages_json; }
};

TEST_F(responses_edge, a_response_has_the_members_that_the_official_client_reads) {
  open();
  const raw_response answer =
      post(R"({"input":"hi","instructions":"Be brief.","metadata":{"a":"b"},"temperature":0.5})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto parsed = json_document::parse(answer.body, 64);
  ASSERT_TRUE(parsed) << answer.body;
  for (const std::string_view part :
       {R"("object":"response")", R"("status":"completed")", R"("error":null)", R"("incomplete_details":null)",
        R"("output":[{"id":"msg_)", R"("content":[{"type":"output_text","text":"Hello, world!","annotations":[],)",
        R"("instructions":"Be brief.")", R"("metadata":{"a":"b"})", R"("temperature":0.5)", R"("top_p":1)",
        R"("parallel_tool_calls":true)", R"("tool_choice":"auto")", R"("tools":[])", R"("store":true)",
        R"("input_tokens_details":{"cached_tokens":2)", R"("previous_response_id":null)",
        R"("truncation":"disabled")"}) {
    EXPECT_NE(answer.body.find(part), std::string::npos) << part << "\n" << answer.body;
  }
  EXPECT_EQ(messages(), R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  EXPECT_TRUE(answer.has("X-Request-Id: " + member(answer.body, "id")));
}

TEST_F(responses_edge, a_stream_tells_every_change_in_order) {
  open();
  const raw_response answer = post(kStreamBody);
  ASSERT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("text/event-stream"));
  const std::string wanted[] = {"response.created",           "response.in_progress",
                                "response.output_item.added", "response.content_part.added",
                                "response.output_text.delta", "response.output_text.delta",
                                "response.output_text.delta", "response.output_text.done",
                                "response.content_part.done", "response.output_item.done",
                                "response.completed"};
  std::size_t at = 0;
  for (std::size_t number = 0; number < std::size(wanted); ++number) {
    const std::string head = "event: " + wanted[number] + "\ndata: {\"type\":\"" + wanted[number] + "\"";
    ASSERT_EQ(answer.body.find("event: ", at), at) << number;
    EXPECT_EQ(answer.body.substr(at, head.size()), head);
    const std::string tail = ",\"sequence_number\":" + std::to_string(number) + "}\n\n";
    at = answer.body.find("\n\n", at) + 2;
    EXPECT_EQ(answer.body.substr(at - tail.size(), tail.size()), tail);
  }
  EXPECT_EQ(at, answer.body.size());
}

TEST_F(responses_edge, a_stored_response_can_be_read_listed_streamed_again_and_deleted) {
  open();
  const raw_response made = post(kStreamBody);
  const std::string id = member(made.body, "id");
  ASSERT_TRUE(id.starts_with("resp_"));
  const raw_response whole = get("/v1/responses/" + id);
  EXPECT_EQ(whole.status, 200);
  EXPECT_NE(made.body.find(whole.body), std::string::npos);  // it is what response.completed carried
  const raw_response items = get("/v1/responses/" + id + "/input_items");
  EXPECT_NE(items.body.find(R"("role":"user","content":[{"type":"input_text","text":"hi"}])"), std::string::npos)
      << items.body;
  EXPECT_EQ(member(items.body, "first_id"), member(items.body, "id"));
  EXPECT_EQ(get("/v1/responses/" + id + "?stream=true").body, made.body);
  const raw_response rest = get("/v1/responses/" + id + "?stream=true&starting_after=8");
  EXPECT_TRUE(rest.body.starts_with("event: response.output_item.done")) << rest.body;
  EXPECT_EQ(get("/v1/responses/" + id + "?stream=true&starting_after=99").status, 404);
  EXPECT_NE(get("/v1/responses/" + id, "DELETE").body.find("\"deleted\":true"), std::string::npos);
  EXPECT_EQ(get("/v1/responses/" + id).status, 404);
  EXPECT_EQ(get("/v1/responses/" + id, "DELETE").status, 404);
}

TEST_F(responses_edge, store_false_keeps_nothing) {
  open();
  const raw_response made = post(R"({"input":"hi","store":false})");
  ASSERT_EQ(made.status, 200);
  EXPECT_EQ(get("/v1/responses/" + member(made.body, "id")).status, 404);
}

TEST_F(responses_edge, a_conversation_goes_on_from_the_previous_response_without_its_instructions) {
  open();
  const std::string first = member(post(R"({"input":"one","instructions":"Old."})").body, "id");
  const std::string body = R"({"input":"two","instructions":"New.","previous_response_id":")" + first + "\"}";
  const raw_response second = post(body);
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_EQ(messages(), R"([{"role":"system","content":"New."},{"role":"user","content":"one"},)"
                        R"({"role":"assistant","content":"Hello, world!"},{"role":"user","content":"two"}])");
  EXPECT_EQ(member(second.body, "previous_response_id"), first);
  EXPECT_EQ(get("/v1/responses/" + first, "DELETE").status, 200);
  const std::string third = R"({"input":"three","previous_response_id":")" + member(second.body, "id") + "\"}";
  EXPECT_EQ(post(third).status, 200);  // it has all that was said, also what is deleted
  EXPECT_NE(messages().find(R"("content":"one")"), std::string::npos);
  const raw_response gone = post(body);
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(member(gone.body, "param"), "previous_response_id");
}

TEST_F(responses_edge, items_of_every_kind_reach_the_template) {
  open();
  const std::string body =
      R"({"input":[{"role":"developer","content":"D"},{"type":"message","role":"user","content":[)"
      R"({"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},{"role":"assistant","content":"C"},)"
      R"({"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"},)"
      R"({"type":"function_call","call_id":"c2","name":"g","arguments":"not json"},)"
      R"({"type":"function_call_output","call_id":"c1","output":"42"}],)"
      R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false}]})";
  ASSERT_EQ(post(body).status, 200);
  EXPECT_EQ(messages(),
            R"([{"role":"system","content":"D"},{"role":"user","content":"ab"},{"role":"assistant","content":"C",)"
            R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"x":1}}},)"
            R"({"id":"c2","type":"function","function":{"name":"g","arguments":"not json"}}]},)"
            R"({"role":"tool","tool_call_id":"c1","content":"42"}])");
  EXPECT_EQ(std::get<chat_prompt>(runtime_->submitted().back().prompt).tools_json,
            R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":false}}])");
}

TEST_F(responses_edge, endings_are_told_apart) {
  open();
  const struct {
    finish_reason reason;
    std::string status;
    std::string details;
    std::string last;
  } cases[] = {
      {finish_reason::stop, "completed", "null", "response.completed"},
      {finish_reason::length, "incomplete", R"({"reason":"max_output_tokens"})", "response.incomplete"},
      {finish_reason::timeout, "incomplete", R"({"reason":"timeout"})", "response.incomplete"},
      {finish_reason::cancelled, "cancelled", "null", "response.incomplete"},
  };
  for (const auto& each : cases) {
    runtime_->change([&] { runtime_->script = {{"text", false}, {"", true, each.reason}}; });
    const raw_response whole = post(kBody);
    EXPECT_EQ(member(whole.body, "status"), each.status);
    EXPECT_NE(whole.body.find("\"incomplete_details\":" + each.details), std::string::npos) << whole.body;
    EXPECT_NE(post(kStreamBody).body.find("event: " + each.last + "\n"), std::string::npos) << each.status;
  }
}

TEST_F(responses_edge, a_failure_is_a_500_or_the_last_event_of_a_stream) {
  open();
  runtime_->change([this] { runtime_->script = {{"text", false}, {"", true, finish_reason::error}}; });
  EXPECT_EQ(post(kBody).status, 500);
  const std::string stream = post(kStreamBody).body;
  EXPECT_NE(stream.find("event: response.failed\n"), std::string::npos) << stream;
  EXPECT_NE(stream.find(R"("error":{"code":"server_error","message":")"), std::string::npos);
}

TEST_F(responses_edge, an_answer_without_text_is_a_message) {
  open();
  runtime_->change([this] { runtime_->script = {{"", true}}; });
  EXPECT_NE(post(kBody).body.find(R"("content":[{"type":"output_text","text":"")"), std::string::npos);
  EXPECT_NE(post(kStreamBody).body.find("event: response.content_part.done"), std::string::npos);
}

TEST_F(responses_edge, log_probabilities_come_when_they_are_included) {
  open();
  const std::string body =
      R"({"input":"hi","include":["message.output_text.logprobs"],"top_logprobs":1,"stream":true})";
  const std::string stream = post(body).body;
  EXPECT_EQ(runtime_->submitted().back().logprobs.top, 1);
  EXPECT_NE(stream.find(R"("delta":"Hello","logprobs":[{"token":"H","logprob":-0.5,"bytes":[72])"), std::string::npos)
      << stream;
  EXPECT_NE(post(kBody).body.find(R"("logprobs":[])"), std::string::npos);
}

TEST_F(responses_edge, generate_false_only_keeps_the_state) {
  open();
  const raw_response made = post(R"({"input":"remember","generate":false})");
  EXPECT_NE(made.body.find(R"("output":[])"), std::string::npos) << made.body;
  EXPECT_TRUE(runtime_->submitted().empty());
  ASSERT_EQ(post(R"({"input":"go","previous_response_id":")" + member(made.body, "id") + "\"}").status, 200);
  EXPECT_EQ(messages(), R"([{"role":"user","content":"remember"},{"role":"user","content":"go"}])");
}

const std::string kTools = R"(,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}])";
const std::string kCall = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>";

TEST_F(responses_edge, a_call_of_a_function_is_an_item_streamed_and_whole) {
  server_options options;
  options.tool_calls = tool_call_format::hermes;
  open(options);
  runtime_->change([this] { runtime_->script = {{"Wait. ", false}, {kCall, false}, {"", true}}; });
  const raw_response whole = post(R"({"input":"hi")" + kTools + "}");
  EXPECT_NE(whole.body.find(R"("type":"output_text","text":"Wait.)"), std::string::npos) << whole.body;
  EXPECT_NE(whole.body.find(R"("name":"f","arguments":"{\"x\": 1}")"), std::string::npos) << whole.body;
  const std::string stream = post(R"({"input":"hi","stream":true)" + kTools + "}").body;
  std::size_t at = 0;
  for (const std::string_view part :
       {R"(event: response.output_text.done)", R"("item":{"id":"msg_)", R"(event: response.output_item.added)",
        R"("type":"function_call","status":"in_progress")", R"(event: response.function_call_arguments.delta)",
        R"(event: response.function_call_arguments.done)", R"("arguments":"{\"x\": 1}")",
        R"("type":"function_call","status":"completed")", R"("status":"completed")"}) {
    at = stream.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << "\n" << stream;
  }
  const std::string id = member(stream, "id");
  const std::string call_id = member(stream.substr(stream.find("\"call_id\"")), "call_id");
  ASSERT_EQ(post(R"({"previous_response_id":")" + id + R"(","input":[{"type":"function_call_output","call_id":")" +
                 call_id + R"(","output":"42"}]})")
                .status,
            200);
  EXPECT_EQ(messages(),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Wait.","tool_calls":[{"id":")" + call_id +
                R"(","type":"function","function":{"name":"f","arguments":{"x":1}}}]},)" +
                R"({"role":"tool","tool_call_id":")" + call_id + R"(","content":"42"}])");
}

TEST_F(responses_edge, cancelling_ends_it_with_what_it_has) {
  runtime_->hold = true;
  open();
  raw_client client(port());
  client.send(raw_client::message("POST", "/v1/responses", kStreamBody, "X-Request-Id: mine\r\n"));
  ASSERT_TRUE(client.read_until("response.in_progress"));
  EXPECT_EQ(member(get("/v1/responses/resp_mine").body, "status"), "in_progress");
  EXPECT_EQ(post(R"({"input":"x","previous_response_id":"resp_mine"})").status, 400);
  const raw_response cancelled = post("", "/v1/responses/resp_mine/cancel");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(member(cancelled.body, "status"), "cancelled");
  EXPECT_TRUE(client.read_until("response.incomplete"));
  EXPECT_EQ(post("", "/v1/responses/resp_mine/cancel").status, 200);  // it has ended: as it is
  EXPECT_EQ(post("", "/v1/responses/resp_none/cancel").status, 404);
}

TEST_F(responses_edge, in_the_background_it_is_answered_at_once_and_made_without_its_client) {
  runtime_->hold = true;
  open();
  std::string id;
  {
    raw_client client(port());
    const auto answer = client.request("POST", "/v1/responses", R"({"input":"hi","background":true})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(member(answer.body, "status"), "in_progress");
    EXPECT_EQ(field(answer.body, R"("background":)"), "true");
    id = member(answer.body, "id");
    EXPECT_TRUE(answer.has("X-Request-Id: " + id));
  }
  EXPECT_EQ(member(get("/v1/responses/" + id).body, "status"), "in_progress");
  runtime_->release();
  const raw_response events = get("/v1/responses/" + id + "?stream=true");  // up to its end
  EXPECT_NE(events.body.find("event: response.completed"), std::string::npos) << events.body;
  const raw_response ended = get("/v1/responses/" + id);
  EXPECT_EQ(member(ended.body, "status"), "completed");
  EXPECT_NE(ended.body.find(R"("text":"Hello, world!")"), std::string::npos) << ended.body;
  EXPECT_TRUE(runtime_->cancelled().empty());
  EXPECT_EQ(post(R"({"input":"more","previous_response_id":")" + id + R"(","background":true})").status, 200);
}

TEST_F(responses_edge, a_stream_in_the_background_survives_its_connection) {
  runtime_->hold = true;
  open();
  std::string id;
  {
    raw_client client(port());
    client.send(raw_client::message("POST", "/v1/responses", R"({"input":"hi","background":true,"stream":true})"));
    const std::string begun = client.take_until("response.in_progress");
    id = member(begun, "id");
  }
  for (int i = 0; i < 5; ++i) probe();  // by now the connection's end was seen
  runtime_->release();
  const raw_response events = get("/v1/responses/" + id + "?stream=true&starting_after=1");
  EXPECT_NE(events.body.find("event: response.completed"), std::string::npos) << events.body;
  EXPECT_TRUE(runtime_->cancelled().empty());
}

TEST_F(responses_edge, what_is_refused_is_refused_in_the_background_too_and_a_cancel_reaches_it) {
  runtime_->hold = true;
  open();
  const std::string id = member(post(R"({"input":"hi","background":true})").body, "id");
  const raw_response cancelled = post("", "/v1/responses/" + id + "/cancel");
  EXPECT_EQ(member(cancelled.body, "status"), "cancelled") << cancelled.body;
  runtime_->change([this] { runtime_->refuse = error{error_code::invalid_argument, "Too long.", "input"}; });
  const raw_response refused = post(R"({"input":"hi","background":true})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(get("/v1/responses/" + refused.head.substr(refused.head.find("resp_"), 29)).status, 404);
}

TEST_F(responses_edge, in_the_background_a_response_counts_as_its_keys_until_it_ends) {
  runtime_->hold = true;
  server_options options;
  options.api_keys = {"secret"};
  options.max_requests_per_key = 1;
  open(std::move(options));
  raw_client client(port());
  const std::string key = "Authorization: Bearer secret\r\n";
  const std::string body = R"({"input":"hi","background":true})";
  const auto first = client.request("POST", "/v1/responses", body, key);
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(client.request("POST", "/v1/responses", body, key).status, 429);
  runtime_->release();
  const std::string events = "/v1/responses/" + member(first.body, "id") + "?stream=true";
  EXPECT_EQ(client.request("GET", events, {}, key).status, 200);
  EXPECT_EQ(client.request("POST", "/v1/responses", body, key).status, 200);
}

TEST_F(responses_edge, a_client_that_goes_away_cancels_its_response) {
  runtime_->hold = true;
  open();
  {
    raw_client client(port());
    client.send(raw_client::message("POST", "/v1/responses", kStreamBody));
    ASSERT_TRUE(client.read_until("response.in_progress"));
  }
  EXPECT_TRUE(runtime_->wait_for_cancelled(1));
}

TEST_F(responses_edge, pages_of_input_items) {
  open();
  std::string items;
  for (int i = 0; i < 25; ++i)
    items += (i == 0 ? "" : ",") + std::string(R"({"role":"user","id":"i)") + std::to_string(i) + R"(","content":"x"})";
  const std::string path = "/v1/responses/" + member(post(R"({"input":[)" + items + "]}").body, "id") + "/input_items";
  const std::string first = get(path).body;
  EXPECT_EQ(member(first, "first_id"), "i24");
  EXPECT_EQ(member(first, "last_id"), "i5");
  EXPECT_EQ(field(first, "\"has_more\":"), "true");
  const std::string rest = get(path + "?after=i5&limit=100").body;
  EXPECT_EQ(member(rest, "first_id"), "i4");
  EXPECT_EQ(field(rest, "\"has_more\":"), "false");
  EXPECT_EQ(member(get(path + "?order=asc&limit=1").body, "last_id"), "i0");
  for (const std::string query : {"?limit=0", "?limit=101", "?limit=x", "?order=up"})
    EXPECT_EQ(get(path + query).status, 400) << query;
}

TEST_F(responses_edge, mistakes_are_refused_with_their_field) {
  open();
  const struct {
    std::string body;
    std::string param;
    int status;
  } cases[] = {
      {R"({})", "input", 400},
      {R"({"input":[]})", "input", 400},
      {R"({"input":5})", "input", 400},
      {R"({"input":["x"]})", "input", 400},
      {R"({"input":[{"role":"user"}]})", "input", 400},
      {R"({"input":[{"role":"robot","content":"x"}]})", "input", 400},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})", "input", 400},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input", 400},
      {R"({"input":[{"type":"function_call","name":"f"}]})", "input", 400},
      {R"({"input":"x","max_output_tokens":0})", "max_output_tokens", 400},
      {R"({"input":"x","max_output_tokens":5,"max_tokens":6})", "max_output_tokens", 400},
      {R"({"input":"x","n":2})", "n", 400},
      {R"({"input":"x","background":true,"store":false})", "background", 400},
      {R"({"input":"x","background":1})", "background", 400},
      {R"({"input":"x","conversation":"c"})", "conversation", 400},
      {R"({"input":"x","metadata":{"a":1}})", "metadata", 400},
      {R"({"input":"x","include":["everything"]})", "include", 400},
      {R"({"input":"x","truncation":"auto"})", "truncation", 400},
      {R"({"input":"x","tools":[{"type":"web_search"}]})", "tools[0].type", 400},
      {R"({"input":"x","tools":[{"type":"function"}]})", "tools[0].function.name", 400},
      {R"({"input":"x","tool_choice":{"type":"function","name":"f"}})", "tool_choice", 400},
      {R"({"input":"x","previous_response_id":"resp_none"})", "previous_response_id", 404},
      {R"({"input":"x","model":"nobody"})", "model", 404},
      {R"({"input":"x","temperature":-1})", "temperature", 400},
  };
  for (const auto& each : cases) {
    const raw_response answer = post(each.body);
    EXPECT_EQ(answer.status, each.status) << each.body;
    EXPECT_EQ(member(answer.body, "param"), each.param) << answer.body;
  }
  EXPECT_EQ(get("/v1/responses").status, 426);
  EXPECT_EQ(get("/v1/responses", "DELETE").status, 405);
  EXPECT_EQ(get("/v1/responses/resp_x/other").status, 404);
  probe();
}

}  // namespace
}  // namespace tandem::net::test
