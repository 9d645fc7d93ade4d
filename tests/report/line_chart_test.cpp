// Charts of studies: no text is cut, however long names and numbers are.
#include "gyre/report/line_chart.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <utility>
#include <vector>

#include "gyre/svg/svg.h"

namespace gyre {
namespace {

TEST(LineChart, NoTextIsCut) {
  LineChart chart{"a title " + std::string(120, 'm'), "updates", "loss", false, false, false, {}};
  for (int i = 0; i < 30; ++i) {
    chart.lines.push_back({"a method & a schedule with a long name, weights latest, number " + std::to_string(i),
                           {{1, 123456.5 * i}, {2, 5}}});
  }
  const std::string svg = to_svg(chart);
  std::smatch size;
  ASSERT_TRUE(std::regex_search(svg, size, std::regex("viewBox=\"0 0 ([0-9]+) ([0-9]+)\"")));
  const std::regex text("<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\" text-anchor=\"([a-z]+)\"([^>]*)>([^<]*)<");
  int count = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it, ++count) {
    const double x = std::stod((*it)[1]), y = std::stod((*it)[2]);
    const bool bold = (*it)[4].str().find("bold") != std::string::npos;
    if ((*it)[4].str().find("rotate") != std::string::npos) continue;
    const std::string said = std::regex_replace((*it)[5].str(), std::regex("&amp;"), "&");
    const double width = svg_text_width(said, bold ? kSvgTitle : kSvgLabel);
    const double left = (*it)[3] == "end" ? x - width : (*it)[3] == "middle" ? x - width / 2 : x;
    EXPECT_GE(left, 20) << said << ": beside what stands on end";
    EXPECT_LE(left + width, std::stod(size[1])) << said;
    EXPECT_LE(y, std::stod(size[2])) << said;
  }
  EXPECT_GT(count, 40);
}

// XML has no control characters, however they are escaped.
TEST(LineChart, ControlCharactersAreSpeltOut) {
  const LineChart chart{"a title", "updates", "loss", false, false, false, {{"bell \a", {{1, 2}, {2, 3}}}}};
  EXPECT_NE(to_svg(chart).find(">bell \\x07</text>"), std::string::npos);
  EXPECT_EQ(svg_text_width("\a"), svg_text_width("\\x07")) << "as it is drawn";
}

TEST(LineChart, LargeNumbersAreShort) {
  const auto shows = [](double most, const char* label) {
    const std::string svg = to_svg({"t", "x", "y", false, false, false, {{"tokens", {{0, 1}, {most, 2}}}}});
    EXPECT_NE(svg.find(fmt::format(">{}</text>", label)), std::string::npos) << label << " in " << svg;
  };
  shows(1e3, "1000");
  shows(1e5, "100k");
  shows(5e6, "5M");
  shows(2e9, "2B");
  shows(4e11, "400B");
  shows(5e12, "5e+12");
}

TEST(LineChart, ALongLineKeepsItsSpikes) {
  ChartLine line{"loss", {}};
  for (int i = 0; i < 10'000; ++i) line.points.emplace_back(i, 1);
  const auto highest = [](const ChartLine& drawn) {
    const std::string svg = to_svg({"t", "x", "y", false, false, false, {drawn}});
    const std::regex point("[ML][-0-9.]+ ([-0-9.]+)");
    const size_t path = svg.find("stroke-width=\"1.6\""), begin = svg.rfind("<path", path);
    const std::string points = svg.substr(begin, path - begin);
    double top = 1e9;
    int count = 0;
    for (std::sregex_iterator it(points.begin(), points.end(), point), end; it != end; ++it, ++count) {
      top = std::min(top, std::stod((*it)[1]));
    }
    EXPECT_LE(count, 500);
    return top;
  };
  for (const size_t spike : {size_t{4321}, size_t{7777}}) {
    ChartLine with = line;
    with.points[spike].second = 9;
    EXPECT_EQ(highest(with), 36) << "the upper edge of the plot";
    with.points[spike - 1].second = std::nan("");
    EXPECT_EQ(highest(with), 36) << "beside a point that is left out";
  }
}

TEST(LineChart, OneValueIsItsOnlyTick) {
  for (const bool is_log : {false, true}) {
    for (const auto& [value, label] : std::vector<std::pair<double, std::string>>{{3e6, "3M"}, {0.3, "0.3"}}) {
      const std::string svg = to_svg({"t", "x", "y", is_log, is_log, false, {{"a line", {{2, value}, {2, value}}}}});
      EXPECT_NE(svg.find(">2</text>"), std::string::npos) << svg;
      EXPECT_NE(svg.find(">" + label + "</text>"), std::string::npos) << svg;
      const size_t tick = svg.find("text-anchor=\"end\"");
      EXPECT_EQ(svg.find("text-anchor=\"end\"", tick + 1), std::string::npos) << svg;
    }
  }
}

TEST(LineChart, AnEmptyOneIsAPictureToo) {
  EXPECT_NE(to_svg({"nothing", "x", "y", true, true, true, {}}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace gyre
