// config.json as a family's reader takes it apart. What is null there is as good as missing.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gyre/core/json_fields.h"

namespace gyre {

class ConfigFields {
 public:
  // InputError unless it is an object. `origin` is what errors call it.
  ConfigFields(const nlohmann::json& config, std::string origin);
  ConfigFields(const ConfigFields&) = delete;
  ConfigFields& operator=(const ConfigFields&) = delete;

  // Must be there. InputError where it is not, or is of another type.
  int64_t whole(const char* key) { return fields_.need<int64_t>(key); }
  // What it is where nobody says it is `usual`.
  int64_t whole(const char* key, int64_t usual);
  double number(const char* key, double usual);
  std::string word(const char* key, const std::string& usual);
  bool flag(const char* key, bool usual);
  const nlohmann::json* find(const char* key) { return fields_.find(key); }

  // An option of which there is one value here. InputError, naming it, for another.
  void only(const char* key, const nlohmann::json& value);
  [[noreturn]] void fail(const std::string& what) const { fields_.fail(what); }

 private:
  nlohmann::json config_;
  JsonFields<> fields_;
};

}  // namespace gyre
