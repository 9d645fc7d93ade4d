// Tests which settings of a configuration are said to have no effect.
#include "gyre/config/without_effect.h"

#include <gmock/gmock.h>

namespace gyre {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> useless(const std::vector<std::string>& overrides) {
  return settings_without_effect(parse_config("[data]\ntokens = \"x\"\n", "file.toml", overrides));
}

TEST(SettingsWithoutEffect, AreThoseOfOtherKindsThatWereChanged) {
  EXPECT_THAT(useless({}), IsEmpty());
  EXPECT_THAT(useless({"model.llama.key_value_heads=1", "model.llama.qk_norm=true"}),
              ElementsAre("[model.llama] key_value_heads, qk_norm have no effect: kind is gpt"));
  EXPECT_THAT(useless({"model.kind=llama", "model.bias=false", "model.activation=silu", "model.llama.qk_norm=true"}),
              IsEmpty());
  EXPECT_THAT(useless({"pipeline.schedule=1f1b", "pipeline.amdp.pipelines=3", "optimizer.kind=adamw",
                       "optimizer.basis-rotation.interval=7"}),
              ElementsAre("[pipeline.amdp] pipelines has no effect: schedule is 1f1b",
                          "[optimizer.basis-rotation] interval has no effect: kind is adamw"));
}

TEST(SettingsWithoutEffect, AreNotDefaultsThatAreWrittenDown) {
  EXPECT_THAT(useless({"model.llama.key_value_heads=0", "optimizer.muon.matrix_lr_ratio=20"}), IsEmpty());
}

TEST(SettingsWithoutEffect, AreThoseOfACooldownWithoutOne) {
  EXPECT_THAT(useless({"optimizer.cooldown=5", "optimizer.cooldown_shape=sqrt"}),
              ElementsAre("[optimizer] cooldown, cooldown_shape have no effect: decay is cosine"));
  EXPECT_THAT(useless({"optimizer.cooldown=5", "optimizer.decay=wsd"}), IsEmpty());
}

}  // namespace
}  // namespace gyre
