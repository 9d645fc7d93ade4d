// The fuzzer's entry point: gyre_fuzzer --target=NAME, then libFuzzer's own options and corpora. An exception from a
// target ends the process, which libFuzzer records as a finding.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace {
const gyre::fuzz::Target* chosen = nullptr;  // a global, since libFuzzer's interface passes no context
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view option = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument.substr(0, option.size()) == option) chosen = gyre::fuzz::find_target(argument.substr(option.size()));
  }
  if (chosen != nullptr) return 0;
  std::fputs("gyre_fuzzer: give --target=NAME, one of:", stderr);
  for (const auto& target : gyre::fuzz::targets()) std::fprintf(stderr, " %s", target.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
