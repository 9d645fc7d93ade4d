#include "gyre/train/share_messages.h"

#include <nlohmann/json.hpp>

#include "gyre/core/json_text.h"

namespace gyre {
namespace {

using Json = nlohmann::json;

Json number_json(const std::optional<ShardNumber>& number) {
  return number ? Json{number->number, number->count} : Json(nullptr);
}

std::optional<ShardNumber> number_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return ShardNumber{json.at(0), json.at(1)};
}

}  // namespace

std::string to_text(const ShareQuestion& question) {
  return Json{{"kind", question.kind},
              {"token", question.token},
              {"rank", question.rank},
              {"mark", to_text(question.mark)},
              {"bytes", question.bytes},
              {"step", question.step},
              {"manifest", question.checkpoint.manifest},
              {"indexes", question.checkpoint.indexes},
              {"steps", question.steps},
              {"damaged", question.damaged},
              {"copy", question.copy}}
      .dump();
}

ShareQuestion parse_share_question(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("kind"),
          json.at("token"),
          json.at("rank"),
          parse_parts_mark(json.at("mark").get<std::string>()),
          json.at("bytes"),
          json.at("step"),
          {json.at("manifest"), json.at("indexes")},
          json.at("steps"),
          json.at("damaged"),
          json.at("copy")};
}

std::string to_text(const ShareAnswer& answer) {
  return json_text(Json{{"outcome", answer.outcome},
                        {"what", answer.what},
                        {"note", answer.note},
                        {"host", answer.place.host},
                        {"directory", answer.place.directory},
                        {"file_bytes", answer.sizes.file_bytes},
                        {"optimizer_bytes", answer.sizes.optimizer_bytes},
                        {"model", answer.parts.model},
                        {"optimizer", answer.parts.optimizer},
                        {"short_of_room", answer.short_of_room}});
}

ShareAnswer parse_share_answer(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("outcome"),
          json.at("what"),
          json.at("note"),
          {json.at("host"), json.at("directory")},
          {json.at("file_bytes"), json.at("optimizer_bytes")},
          {json.at("model"), json.at("optimizer")},
          json.at("short_of_room")};
}

std::string to_text(const WriteOrder& order) {
  return Json{{"kind", order.kind},
              {"directory", order.directory},
              {"model", number_json(order.numbers.model)},
              {"optimizer", number_json(order.numbers.optimizer)},
              {"step", order.step},
              {"steps", order.steps}}
      .dump();
}

WriteOrder parse_write_order(const std::string& text) {
  const Json json = Json::parse(text);
  return {json.at("kind"),
          json.at("directory"),
          {number_of(json.at("model")), number_of(json.at("optimizer"))},
          json.at("step"),
          json.at("steps")};
}

std::string to_text(const WriteResult& result) {
  Json json = {{"error", result.error}, {"no_room", result.no_room}, {"shards", Json::array()}};
  for (const WrittenShard& shard : result.shards) {
    json["shards"].push_back({{"part", shard.part},
                              {"name", shard.name},
                              {"bytes", shard.file.bytes},
                              {"checksum", shard.file.checksum},
                              {"tensor_bytes", shard.tensor_bytes},
                              {"tensors", shard.tensors}});
  }
  return json_text(json);
}

WriteResult parse_write_result(const std::string& text) {
  const Json json = Json::parse(text);
  WriteResult result;
  result.error = json.at("error");
  result.no_room = json.at("no_room");
  for (const Json& shard : json.at("shards")) {
    result.shards.push_back({shard.at("part"),
                             shard.at("name"),
                             {shard.at("bytes"), shard.at("checksum")},
                             shard.at("tensor_bytes"),
                             shard.at("tensors")});
  }
  return result;
}

}  // namespace gyre
