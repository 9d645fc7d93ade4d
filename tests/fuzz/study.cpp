// Studies: every run of an accepted study can be listed.
#include "gyre/study/study.h"

#include "fuzz/targets.h"

namespace gyre::fuzz {

void study(std::string_view input) {
  const auto study = accepted([&] { return parse_study(input, "input"); });
  if (!study) return;
  const auto arms = study_arms(*study);
  for (size_t arm = 0; arm < arms.size(); ++arm) {
    require(!label(*study, arms[arm]).empty(), "an arm has a name");
    const double rate = learning_rates(*study, arms[arm]).at(0);
    require(final_runs(*study, arms, arm, rate).size() == study->seeds.size(), "a run for every seed");
    trials(*study, arms, arm);
  }
}

}  // namespace gyre::fuzz
