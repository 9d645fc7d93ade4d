// The error of make_schedule for options that the schedule cannot serve, or "no error".
#pragma once

#include <string>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"

namespace gyre::testing_support {

inline std::string refusal(const ScheduleOptions& options) {
  try {
    make_schedule(options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace gyre::testing_support
