// Reads the fields of a config.json. A field that is null counts as missing.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gyre/core/json_fields.h"

namespace gyre {

class ConfigFields {
 public:
  // Throws InputError unless `config` is an object. `origin` is what errors call it.
  ConfigFields(const nlohmann::json& config, std::string origin);
  ConfigFields(const ConfigFields&) = delete;
  ConfigFields& operator=(const ConfigFields&) = delete;

  // A required field. Throws InputError if it is missing or of another type.
  int64_t whole(const char* key) { return fields_.need<int64_t>(key); }
  // Optional fields, with `usual` as the default. They throw InputError for another type.
  int64_t whole(const char* key, int64_t usual);
  double number(const char* key, double usual);
  std::string word(const char* key, const std::string& usual);
  bool flag(const char* key, bool usual);
  const nlohmann::json* find(const char* key) { return fields_.find(key); }

  // An option that gyre has with this value alone; it may be missing. Throws InputError, naming it, for another value.
  void only(const char* key, const nlohmann::json& value);
  [[noreturn]] void fail(const std::string& what) const { fields_.fail(what); }

 private:
  nlohmann::json config_;
  JsonFields<> fields_;
};

}  // namespace gyre
