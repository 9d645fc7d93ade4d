// Reads a configuration from a file and overrides, and reports all faults at once.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gyre/config/config.h"
#include "gyre/config/tables.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_fields.h"
#include "gyre/core/utf8.h"
#include "gyre/schedule/load.h"

namespace gyre {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names that a file may use: tables, and the keys of each table.
class Names {
 public:
  Names() {
    Config config;
    for_each_field(config, [&](const std::string& table, const char* key, auto&&...) {
      if (tables_.empty() || tables_.back() != table) tables_.push_back(table);
      keys_[table].emplace_back(key);
    });
  }

  void add_source(const std::string& name) {
    tables_.push_back(source_table(name));
    DataSource source;
    DataSource::each_option(source, [&](const char* key, auto&&...) { keys_[tables_.back()].emplace_back(key); });
  }

  bool has_table(const std::string& table) const { return contains(tables_, table); }
  bool has_key(const std::string& table, const std::string& key) const { return contains(keys_.at(table), key); }
  // Top-level tables, e.g. "optimizer".
  std::vector<std::string> top_tables() const {
    std::vector<std::string> top_tables;
    std::copy_if(tables_.begin(), tables_.end(), std::back_inserter(top_tables),
                 [](const std::string& table) { return table.find('.') == std::string::npos; });
    return top_tables;
  }
  // The tables within `table`, e.g. "muon" within "optimizer".
  std::vector<std::string> within(const std::string& table) const {
    std::vector<std::string> within;
    for (const std::string& other : tables_) {
      if (other.starts_with(table + ".")) within.push_back(other.substr(table.size() + 1));
    }
    return within;
  }

  std::string unknown_table(const std::string& table) const {
    const size_t dot = table.find('.');
    const std::string top_table = table.substr(0, dot);
    if (dot == std::string::npos || !has_table(top_table)) {
      return fmt::format("unknown table [{}]{}", printable(table), suggestion(top_table, top_tables()));
    }
    // The names of sources are the user's own: they are suggested only where one is meant.
    if (table.starts_with(kSourceTable)) {
      const std::string name = table.substr(std::string_view(kSourceTable).size());
      return fmt::format("no [[data.source]] has the name '{}'{}", printable(name),
                         suggestion(name, within("data.source")));
    }
    if (top_table == "data") {
      return fmt::format("unknown table [{}]; [data] has no tables but [[data.source]]", printable(table));
    }
    if (within(top_table).empty()) {
      return fmt::format("unknown table [{}]; [{}] has no tables", printable(table), top_table);
    }
    return fmt::format("unknown table [{}]{}", printable(table), suggestion(table.substr(dot + 1), within(top_table)));
  }
  std::string unknown_key(const std::string& table, const std::string& key) const {
    const std::string what = fmt::format("unknown key '{}' in [{}]", printable(key), table);
    std::string others = tables_with(key, table);
    if (others.empty()) others = tables_with(key);
    return others.empty() ? what + suggestion(key, keys_.at(table))
                          : fmt::format("{}; it is a key of {}", what, others);
  }
  // "[model] and [optimizer]": the tables that have the key, or those of them within `table` or around it.
  std::string tables_with(const std::string& key, const std::string& table = "") const {
    std::vector<std::string> with;
    for (const std::string& other : tables_) {
      const bool counts = table.empty() || other.starts_with(table + ".") || table.starts_with(other + ".");
      if (!counts || !has_key(other, key)) continue;
      const std::string name = other.starts_with(kSourceTable) ? "[[data.source]]" : fmt::format("[{}]", other);
      if (!contains(with, name)) with.push_back(name);
    }
    return join(with, " and ");
  }

 private:
  std::vector<std::string> tables_;
  std::map<std::string, std::vector<std::string>> keys_;  // by table
};

// Reads a file and overrides into a configuration, and collects all faults instead of stopping at the first.
class Reader {
 public:
  Reader(Tokens tokens, std::string origin) : tokens_(tokens), origin_(std::move(origin)) {}

  // `origin`: the file, or the override. Ignores the tables in `others`.
  void read(const toml::table& root, const std::string& origin, const std::vector<std::string>& others = {}) {
    for (const auto& [name, node] : root) {
      const std::string table(name.str());
      if (contains(others, table)) continue;
      if (!contains(names_.top_tables(), table)) {
        add(origin, node, table, names_.unknown_table(table));
        has_unknown_table_ = true;
      } else if (!node.is_table()) {
        add(origin, node, table, fmt::format("[{}] must be a table", table));
      } else {
        if (!is_override(origin)) tables_.insert(table);
        read_top_table(*node.as_table(), table, origin);
      }
    }
  }

  // text: "table.key=value". The value of a string option may be unquoted.
  void read_override(const std::string& text) {
    const std::string origin = fmt::format("--set {}", printable(text));
    if (faults_.collect([&] { read(override_document(text, origin), origin); })) return;
    faulty_.insert(text.substr(0, text.find('=')));
    has_unknown_table_ = true;  // or may have
  }

  // A path is looked at by those who read the schedule: a run that is complete needs none.
  void check_schedule() {
    const std::string& name = config_.pipeline.schedule;
    if (name.find('/') != std::string::npos || is_schedule_file(name)) return;
    const std::string fault = fault_of_schedule_name(name);
    if (!fault.empty()) faults_in("pipeline", "pipeline", {{{"schedule"}, fault}});
  }

  // Checks constraints between keys, if all keys involved could be read.
  void check() {
    faults_in("model", "model", faults_of(config_.model));
    faults_in("optimizer", "optimizer", faults_of(config_.optimizer));
    const OptimizerKind& kind = optimizer_kinds().at(config_.optimizer.kind);
    if (kind.faults != nullptr) {
      const std::string table = fmt::format("optimizer.{}", kind.name);
      faults_in(table, "optimizer", kind.faults(config_.optimizer.own.of_kind(kind.name)));
    }
    check_data();
  }

  Config finish(const FurtherFaults& further = {}) {
    take_defaults_of_kind();
    check();
    if (further && !faults_.empty()) {
      further(
          config_, [this](std::string_view name) { return was_read(name); }, faults_);
    }
    faults_.raise();
    return config_;
  }

 private:
  // Where a key was last given.
  struct Given {
    std::string place;
    int64_t line = Faults::kNoLine;
    bool valid = true;  // the value could be read
  };

  template <typename T>
  static bool is_too_large(std::string_view text) {
    if constexpr (std::is_same_v<T, bool>) {
      return false;
    } else {
      T number{};
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      return error == std::errc::result_out_of_range && rest == text.data() + text.size();
    }
  }

  static bool is_override(const std::string& origin) { return origin.rfind("--set ", 0) == 0; }

  // `name`: of the table or key that the fault is in.
  void add(const std::string& origin, const toml::node& node, const std::string& name, const std::string& what) {
    faulty_.insert(name);
    faults_.add(fmt::format("{}: {}", place(origin, node), what),
                is_override(origin) ? Faults::kNoLine : line_of(node));
  }

  bool was_read(std::string_view name) const {
    const auto within = [](std::string_view inner, std::string_view outer) {
      return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
    };
    for (const std::string& faulty : faulty_) {
      if (within(faulty, name) || within(name, faulty)) return false;
    }
    // A table that the file does not have may be the one whose name is unknown.
    return !has_unknown_table_ || tables_.contains(name.substr(0, name.find('.')));
  }

  // Keys of [model] that were not given have the defaults of the model's kind.
  void take_defaults_of_kind() {
    const ModelKind& kind = model_kinds().at(config_.model.kind);
    if (kind.set_defaults == nullptr) return;
    ModelSettings defaults;
    kind.set_defaults(defaults);
    ModelSettings::each_option(config_.model, [&](std::string_view key, auto& field, auto&&...) {
      if (given_.contains(fmt::format("model.{}", key))) return;
      ModelSettings::each_option(defaults, [&](std::string_view other, const auto& value, auto&&...) {
        if constexpr (std::is_same_v<decltype(value), std::add_const_t<std::remove_reference_t<decltype(field)>>&>) {
          if (key == other) field = value;
        }
      });
    });
  }

  void check_data() {
    const DataSettings& data = config_.data;
    if (data.tokens.empty() && data.source.empty() && tokens_ == Tokens::Needed) {
      faults_in("data", "data", {{{"tokens"}, "is missing; give the directory that gyre prepare made"}});
    }
    if (!data.tokens.empty() && !data.source.empty()) {
      faults_in("data", "data", {{{"tokens"}, "and [[data.source]] are both given; give it as one more source"}});
    }
    for (const DataSource& source : data.source) {
      const std::string table = source_table(source.name);
      if (source.tokens.empty()) faults_in(table, table, {{{"tokens"}, "is missing; give token files"}});
    }
  }

  // Reads the list [[data.source]] or, in an override, the table of one source that exists.
  void read_sources(const toml::node& node, const std::string& origin) {
    const toml::array* list = node.as_array();
    if (list == nullptr) {
      const toml::table* table = node.as_table();
      for (const auto& [name, inner] : table != nullptr ? *table : toml::table{}) {
        const std::string known = source_table(std::string(name.str()));
        if (!is_override(origin) || !inner.is_table() || !names_.has_table(known)) continue;
        read_keys(*inner.as_table(), known, origin);
        return;
      }
      add(origin, node, "data.source", "[data.source] is a list; write [[data.source]], once for each source");
      return;
    }
    for (const toml::node& item : *list) {
      const toml::table* keys = item.as_table();
      if (keys == nullptr) {
        add(origin, item, "data.source", "[[data.source]] must be a table");
        continue;
      }
      const toml::node* named = keys->get("name");
      const std::string name =
          named == nullptr ? std::to_string(config_.data.source.size() + 1) : named->value_or(std::string());
      if (!is_source_name(name)) {
        add(origin, named != nullptr ? *named : item, "data.source",
            "[[data.source]] name must be of letters, digits, _ and -, 64 at most");
      } else if (names_.has_table(source_table(name))) {
        add(origin, named != nullptr ? *named : item, "data.source",
            fmt::format("[[data.source]] name '{}' is used twice", name));
      } else {
        config_.data.source.emplace_back().name = name;
        names_.add_source(name);
        read_keys(*keys, source_table(name), origin);
      }
    }
  }
  static bool is_source_name(const std::string& name) {
    constexpr size_t kLongestName = 64;
    return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
  }
  static bool is_source_list(const std::string& table, const std::string& key) {
    return table == "data" && key == "source";
  }

  // Reads a top-level table and the tables of its kinds.
  void read_top_table(const toml::table& keys, const std::string& top_table, const std::string& origin) {
    for (const auto& [name, node] : keys) {
      const std::string kind(name.str());
      if (is_source_list(top_table, kind)) read_sources(node, origin);
      if (!is_inner(top_table, kind, node) || is_source_list(top_table, kind)) continue;
      const std::string table = fmt::format("{}.{}", top_table, kind);
      if (names_.has_table(table)) {
        read_keys(*node.as_table(), table, origin);
      } else {
        add(origin, node, table, names_.unknown_table(table));
      }
    }
    read_keys(keys, top_table, origin);
  }

  // Whether the node is meant as the table of a kind.
  bool is_inner(const std::string& table, const std::string& key, const toml::node& node) const {
    return node.is_table() && table.find('.') == std::string::npos && !names_.has_key(table, key);
  }

  void read_keys(const toml::table& keys, const std::string& table, const std::string& origin) {
    for (const auto& [name, node] : keys) {
      const std::string key(name.str());
      if (names_.has_key(table, key)) continue;
      const bool is_read = is_source_list(table, key) || (table.starts_with(kSourceTable) && key == "name");
      if (!is_read && !is_inner(table, key, node)) {
        add(origin, node, fmt::format("{}.{}", table, key), names_.unknown_key(table, key));
      }
    }
    const auto fields = [&](auto&& visit) {
      for_each_field(config_, [&](const std::string& of_table, const char* key, auto& field, const Range& range,
                                  const char* meaning) {
        if (table == of_table) visit(key, field, range, meaning);
      });
    };
    const auto refused = read_known_keys(keys, table, origin, faults_, fields);
    for (const auto& [key, node] : keys) {
      const std::string name(key.str());
      if (!names_.has_key(table, name)) continue;
      const std::string full = fmt::format("{}.{}", table, name);
      const bool valid = !contains(refused, name);
      if (!valid) faulty_.insert(full);
      given_[full] = {place(origin, node), is_override(origin) ? Faults::kNoLine : line_of(node), valid};
    }
  }

  toml::table override_document(const std::string& text, const std::string& origin) const {
    const size_t equals = text.find('=');
    const size_t dot = equals == std::string::npos ? equals : text.rfind('.', equals);
    if (dot == std::string::npos) {
      const std::string tables = names_.tables_with(text.substr(0, equals));
      throw InputError(fmt::format("{}: expected table.key=value, such as optimizer.lr=3e-4{}", origin,
                                   tables.empty() ? "" : fmt::format("; it is a key of {}", tables)));
    }
    const std::string table = text.substr(0, dot), key = text.substr(dot + 1, equals - dot - 1),
                      value = text.substr(equals + 1);
    if (!names_.has_table(table)) throw InputError(fmt::format("{}: {}", origin, names_.unknown_table(table)));
    if (!names_.has_key(table, key)) throw InputError(fmt::format("{}: {}", origin, names_.unknown_key(table, key)));
    bool is_string = false;
    std::string wanted;
    const Config described = config_;
    for_each_field(described, [&](const std::string& t, const char* k, auto& field, const Range& range, auto&&...) {
      if (table != t || key != k) return;
      using T = std::remove_cvref_t<decltype(field)>;
      is_string = std::is_same_v<T, std::string>;
      wanted = type_name<T>();
      if constexpr (!std::is_arithmetic_v<T> && !std::is_same_v<T, std::string>) wanted += ", in brackets";
      // TOML has no larger numbers, so this is a fault of its syntax.
      if constexpr (std::is_arithmetic_v<T>) {
        if (is_too_large<T>(value)) wanted = allowed_numbers<T>(range);
      }
    });
    if (value.find_first_of("\r\n") != std::string::npos) {
      throw InputError(fmt::format("{}: the value has more than one line; give each key a --set of its own", origin));
    }
    if (!is_utf8(value)) {
      throw InputError(fmt::format("{}: is not UTF-8, as a configuration must be", origin));
    }
    const bool bare = is_string && (value.empty() || (value.front() != '"' && value.front() != '\''));
    const std::string document = fmt::format("[{}]\n{} = {}\n", table, key, bare ? toml_string(value) : value);
    try {
      return parse_toml(document, origin);
    } catch (const InputError&) {
      throw InputError(fmt::format("{}: [{}] {} is {}; give {}", origin, table, key, printable(value), wanted));
    }
  }

  // Adds each fault with the place of the first of its keys that was given. Skips a fault if one of its keys could not
  // be read. Keys are looked up in `table`, then in `top_table`, which contains it.
  void faults_in(const std::string& table, const std::string& top_table, const std::vector<OptionFault>& faults) {
    for (const OptionFault& fault : faults) {
      std::optional<Given> where;
      bool all_read = true;
      for (const std::string& key : fault.keys) {
        auto found = given_.find(fmt::format("{}.{}", table, key));
        if (found == given_.end()) found = given_.find(fmt::format("{}.{}", top_table, key));
        if (found == given_.end()) continue;
        all_read = all_read && found->second.valid;
        if (!where) where = found->second;
      }
      if (!all_read) continue;
      faulty_.insert(fmt::format("{}.{}", table, fault.keys[0]));
      faults_.add(fmt::format("{}: [{}] {} {}", where ? where->place : origin_, table, fault.keys[0], fault.what),
                  where ? where->line : Faults::kNoLine);
    }
  }

  Tokens tokens_;
  std::string origin_;
  Names names_;
  Config config_;
  std::map<std::string, Given> given_;  // by "table.key"
  Faults faults_;
  std::set<std::string, std::less<>> tables_;  // of the file: "data"
  std::set<std::string> faulty_;               // tables and keys that have faults: "data", "pipeline.stages"
  bool has_unknown_table_ = false;
};

}  // namespace

Config parse_config(std::string_view text, const std::string& origin, const std::vector<std::string>& overrides,
                    const std::vector<std::string>& other_tables, Tokens tokens) {
  return config_with(text, origin, other_tables, tokens)(overrides);
}

ConfigWith config_with(std::string_view text, const std::string& origin, const std::vector<std::string>& other_tables,
                       Tokens tokens) {
  Reader reader(tokens, origin);
  reader.read(parse_toml(text, origin), origin, other_tables);
  return [reader](const std::vector<std::string>& overrides) {
    Reader own = reader;
    for (const std::string& text_override : overrides) own.read_override(text_override);
    return own.finish();
  };
}

Config load_config(const std::filesystem::path& path, const std::vector<std::string>& overrides, Tokens tokens,
                   const FurtherFaults& further) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    throw InputError(
        fmt::format("{}: is a directory; give a configuration, such as the config.toml of a run", path.string()));
  }
  Reader reader(tokens, path.string());
  reader.read(parse_toml(read_file(path), path.string()), path.string());
  for (const std::string& text_override : overrides) reader.read_override(text_override);
  if (tokens == Tokens::Needed) reader.check_schedule();
  Config config = reader.finish(further);
  make_paths_absolute(config);
  return config;
}

}  // namespace gyre
