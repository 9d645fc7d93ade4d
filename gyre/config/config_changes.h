// The differences between two configurations: a run's, and the one with which it is resumed or that a study asks for.
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

// The changes in the table and in tables within it: for "optimizer" also those in [optimizer.muon].
std::vector<ConfigChange> changes_of(const std::string& table, const std::vector<ConfigChange>& changes);

// {"optimizer.lr": [0.001, 0.003]}, for metrics.
nlohmann::ordered_json to_json(const std::vector<ConfigChange>& changes);
// "optimizer.lr 0.001 -> 0.003, ...", for messages.
std::string describe(const std::vector<ConfigChange>& changes);

}  // namespace gyre
