// Files of costs.
#include "gyre/simulate/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

TEST(CostModel, JsonComesBackTheSame) {
  CostModel costs = uniform_costs(2);
  costs.stages.resize(2, costs.stages[0]);
  costs.stages[1].forward = 0.1234567890123;
  costs.stages[1].optimizer_bytes = int64_t{1} << 40;
  costs.link = {1e-5, 2.5e10};
  costs.tokens_per_microbatch = 4096;
  costs.stages[1].weight_bytes = (int64_t{1} << 60) + 1;  // not representable as a double
  EXPECT_EQ(parse_costs(to_json(costs), "memory"), costs);
}

TEST(CostModel, ErrorsSayWhatIsWrong) {
  const auto message = [](const std::string& json) -> std::string {
    try {
      parse_costs(json, "c.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto with = [](const std::string& rest) { return R"({"format":"gyre-costs 1",)" + rest + "}"; };
  EXPECT_THAT(message("{\n\"stages\": [}\n"), HasSubstr("not JSON at line 2"));
  EXPECT_THAT(message("{}"), HasSubstr("gyre-costs 1"));
  EXPECT_THAT(message(with(R"("stages":[])")), HasSubstr("one entry for each stage"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1}])")), HasSubstr("stages[0]: forward and backward are needed"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":-1,"backward":2}])")), HasSubstr("'forward' is -1; give 0 or more"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1,"backward":2,"backward_input":3}])")),
              HasSubstr("backward_input is more than backward"));
  EXPECT_THAT(message(with(R"("stages":[{"forward":1,"backward":2,"updaet":2}])")),
              HasSubstr("did you mean 'update'?"));
  EXPECT_THAT(message(with(R"("link":{"bandwidth":0},"stages":[{"forward":1,"backward":2}])")), HasSubstr("free link"));
  EXPECT_THAT(message(with(R"("link":{"bandwidth":1e-308},"stages":[{"forward":1,"backward":2}])")),
              HasSubstr("link: bandwidth is 1e-308; give 1e-15 or more"))
      << "or times would be infinite";
}

}  // namespace
}  // namespace gyre
