#include "gyre/report/html/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "gyre/core/json_text.h"
#include "gyre/report/html/assets.h"
#include "gyre/report/html/report_data.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

std::string_view asset(std::string_view name) {
  const std::string_view text = find_asset(name);
  if (text.empty()) throw std::logic_error(fmt::format("the page's {} was not built in", name));
  return text;
}

// JSON that can be put into a script: '<' is escaped, so that no tag begins or ends in it.
std::string for_script(const Json& json) {
  std::string text;
  for (const char c : json_text(json)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

// Fills in page.html. asks: the source from which the page may load data, as in a Content-Security-Policy.
std::string assemble(const Json& data, std::string_view asks) {
  const std::string_view page = asset("page.html");
  std::string html;
  for (size_t at = 0; at < page.size();) {
    const size_t mark = page.find("{{", at);
    html += page.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    const size_t end = page.find("}}", mark);
    const std::string_view name = page.substr(mark + 2, end - mark - 2);
    if (name == "data") {
      html += for_script(data);
    } else if (name == "asks") {
      html += asks;
    } else {
      html += asset(name);
    }
    at = end + 2;
  }
  return html;
}

}  // namespace

Report make_report(const ReportOptions& options) {
  const auto page = ReportData(options.what).read();
  Json data = page->json;
  data["version"] = options.version;
  data["timelines"] = page->timelines;
  return {assemble(data, "'none'"), page->summary, page->notes};
}

std::string live_page(const std::string& version) {
  return assemble({{"version", version}, {"live", true}}, "'self'");
}

}  // namespace gyre
