// Reads the fields of a config.json. What null means differs from field to field, as in transformers: where it is not
// said below, it is an error, as for any value of another type.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "gyre/core/json_fields.h"

namespace gyre {

class ConfigFields {
 public:
  // Throws InputError unless `config`, which must outlive this, is an object. `origin` is what errors call it.
  ConfigFields(const nlohmann::json& config, const std::string& origin) : origin_(origin), fields_(config, origin) {}

  // A required field. Throws InputError if it is missing or of another type.
  int64_t whole(const char* key) { return fields_.need<int64_t>(key); }
  // One that may be missing, or null. Throws InputError for another type.
  int64_t whole(const char* key, int64_t if_missing, int64_t if_null);
  // Optional fields, with `usual` as the default. They throw InputError for another type.
  double number(const char* key, double usual);
  std::string word(const char* key, const std::string& usual);
  bool flag(const char* key, bool usual);
  bool has(const char* key) { return fields_.find(key) != nullptr; }  // perhaps null
  // Null if the field is missing or null.
  const nlohmann::json* find(const char* key);

  // An option that gyre has with this value alone; it may be missing. Throws InputError, naming it, for another value.
  void only(const char* key, const nlohmann::json& value);
  // What errors call the value of a field.
  std::string origin_of(const char* key) const { return fmt::format("{}: '{}'", origin_, key); }
  [[noreturn]] void fail(const std::string& what) const { fields_.fail(what); }

 private:
  std::string origin_;
  JsonFields<> fields_;
};

}  // namespace gyre
