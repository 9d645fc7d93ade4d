// Settings of a configuration that its other settings leave without effect.
#pragma once

#include <string>
#include <vector>

#include "gyre/config/config.h"

namespace gyre {

// One line for each table with such settings. Those at their defaults are not named: every one of them may be written
// down in a file.
std::vector<std::string> settings_without_effect(const Config& config);

}  // namespace gyre
