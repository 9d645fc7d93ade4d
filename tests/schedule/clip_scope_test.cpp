#include "gyre/schedule/clip_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"
#include "gyre/schedule/builders.h"

namespace gyre {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Schedule& schedule, bool by_flag) {
  try {
    check_clipping(schedule, by_flag);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ClipScope, NamesAreThoseOfTheConfiguration) {
  EXPECT_EQ(clip_scopes(), (std::vector<std::string>{"auto", "global", "stage", "none"}));
  for (const std::string& name : clip_scopes()) EXPECT_NO_THROW(parse_clip_scope(name, "clip_scope"));
  try {
    parse_clip_scope("globl", "--clip-scope");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--clip-scope is \"globl\"; give one of: auto, global, stage, none"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'global'"));
  }
}

TEST(ClipScope, AutoIsGlobalWithAFlush) {
  for (const std::string& name : schedule_names()) {
    for (const int replicas : {1, 2}) {
      const auto make = [&](ClipScope scope) {
        return make_schedule({.name = name, .stages = 4, .window = 8, .replicas = replicas, .clip_scope = scope});
      };
      const bool flushes = make(ClipScope::None).has_flush();
      EXPECT_EQ(make(ClipScope::Auto).global_norm, flushes) << name;
      EXPECT_FALSE(make(ClipScope::Stage).global_norm || make(ClipScope::None).global_norm) << name;
      EXPECT_EQ(refusal(make(ClipScope::Auto), false), "") << name;
      EXPECT_EQ(refusal(make(ClipScope::Stage), false), "") << name;
      EXPECT_EQ(refusal(make(ClipScope::Global), false).empty(), flushes) << name;
    }
  }
}

TEST(ClipScope, IsNamedAsItWasGiven) {
  const Schedule schedule =
      make_schedule({.name = "pipedream", .stages = 2, .window = 1, .clip_scope = ClipScope::Global});
  EXPECT_EQ(refusal(schedule, false),
            "[optimizer] clip_scope = \"global\" needs a schedule with a flush (one that waits for each update), and "
            "pipedream has none; use clip_scope = \"stage\"");
  EXPECT_EQ(refusal(schedule, true),
            "--clip-scope global needs a schedule with a flush (one that waits for each update), and pipedream has "
            "none; use --clip-scope stage");
}

TEST(ClipScope, SaysWhichOwnersAddTheirNorms) {
  Schedule schedule = make_schedule({.name = "1f1b", .stages = 3, .window = 4});
  EXPECT_FALSE(schedule.sums_norms());
  set_clip_scope(schedule, ClipScope::Global);
  EXPECT_TRUE(schedule.sums_norms());
  EXPECT_EQ(schedule.norms_added_at(2), 0);
  EXPECT_FALSE(build_forward_only(schedule).sums_norms());
  const Schedule shards = make_schedule({.name = "pipedream", .stages = 3, .window = 4, .replicas = 2});
  EXPECT_TRUE(shards.sums_norms());
  EXPECT_EQ(shards.norms_added_at(2), 2);
}

}  // namespace
}  // namespace gyre
