// What differs between two configurations: the one that a run has, and the one it is resumed with or a study wants.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gyre/config/config.h"

namespace gyre {

struct ConfigChange {
  std::string table, key;
  nlohmann::ordered_json before, after;
};

std::vector<ConfigChange> config_changes(const Config& before, const Config& after);

// Those of the table and of tables within it: of "optimizer", [optimizer.muon]'s too.
std::vector<ConfigChange> changes_of(const std::string& table, const std::vector<ConfigChange>& changes);

// {"optimizer.lr": [0.001, 0.003]}, as metrics have it.
nlohmann::ordered_json to_json(const std::vector<ConfigChange>& changes);
// "optimizer.lr 0.001 -> 0.003, ...", for people.
std::string describe(const std::vector<ConfigChange>& changes);

}  // namespace gyre
