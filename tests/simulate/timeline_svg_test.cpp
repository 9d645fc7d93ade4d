// Pictures of schedules: a box for every action, nothing outside the picture.
#include "gyre/simulate/timeline_svg.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/files.h"
#include "gyre/schedule/builders.h"
#include "support/source_directory.h"

namespace gyre {
namespace {

std::vector<std::smatch> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()};
}

TEST(TimelineSvg, HasABoxForEveryActionAndNothingOutside) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "pipedream", "amdp"}) {
    ScheduleOptions options;
    options.name = name;
    options.stages = 4;
    options.window = 8;
    const Schedule schedule = make_schedule(options);
    const std::string svg = to_svg(schedule, 16, 2);
    const auto size = matches(svg, "viewBox=\"0 0 ([0-9]+) ([0-9]+)\"");
    ASSERT_EQ(size.size(), 1U) << name;
    const double width = std::stod(size[0][1]), height = std::stod(size[0][2]);
    const int halves = std::string(name) == "zb-h1" ? 3 : 2;
    const auto boxes = matches(svg, "<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"");
    EXPECT_EQ(boxes.size(), static_cast<size_t>(16 * 4 * halves + 4 + halves + 1)) << name << ": actions, rows, legend";
    for (const std::smatch& box : boxes) {
      EXPECT_LE(std::stod(box[1]) + std::stod(box[3]), width) << name;
      EXPECT_LE(std::stod(box[2]) + std::stod(box[4]), height) << name;
    }
    for (const std::smatch& text :
         matches(svg, "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" text-anchor=\"start\"[^>]*>([^<]*)<")) {
      const double letter = text[0].str().find("bold") != std::string::npos ? 8 : 6.5;
      EXPECT_LE(std::stod(text[1]) + letter * static_cast<double>(text[3].length()), width) << text[3];
    }
  }
}

TEST(TimelineSvg, ThePicturesOfTheReadmeAreInStep) {
  // Made by: gyre schedule --schedule 1f1b --stages 4 --window 8 --microbatches 16 --format svg; likewise for
  // pipedream.
  for (const auto& [name, window] : {std::pair{"1f1b", 8}, std::pair{"pipedream", 1}}) {
    ScheduleOptions options;
    options.name = name;
    options.stages = 4;
    options.window = window;
    const auto file = testing_support::source_directory() / "docs" / (std::string(name) + ".svg");
    EXPECT_EQ(read_file(file), to_svg(make_schedule(options), 16, 2)) << name;
  }
}

TEST(TimelineSvg, ALongScheduleStaysDrawable) {
  ScheduleOptions options;
  options.stages = 64;
  const std::string svg = to_svg(make_schedule(options), 512, 2);
  const auto size = matches(svg, "viewBox=\"0 0 ([0-9]+) ");
  EXPECT_LE(std::stod(size[0][1]), 1700);
}

}  // namespace
}  // namespace gyre
