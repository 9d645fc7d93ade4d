#include "gyre/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "gyre/core/bytes.h"
#include "gyre/core/error.h"
#include "gyre/core/faults.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"
#include "gyre/core/toml_fields.h"

namespace gyre {
namespace {

bool is_bare_key(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

template <typename Settings, typename Visit>
void for_each_option(Settings& settings, Visit&& visit) {
  std::remove_cvref_t<Settings>::each_option(settings, visit);
}

// Reads a file and notes every fault rather than stopping at the first.
class Reader {
 public:
  Reader(const toml::table& root, const std::string& origin) : root_(root), origin_(origin) {}

  Cluster read() {
    for (const auto& [name, node] : root_) {
      if (std::ranges::find(kTables, std::string(name.str())) != kTables.end()) continue;
      add(node, fmt::format("unknown table [{}]{}", printable(name.str()), suggestion(name.str(), kTables)));
    }
    read_settings();
    read_links();
    read_hosts();
    read_groups();
    check_classes();
    check_processes();
    faults_.raise();
    return std::move(cluster_);
  }

 private:
  inline static const std::vector<std::string> kTables = {"cluster", "links", "hosts", "groups"};

  void add(const toml::node& node, const std::string& what) {
    faults_.add(fmt::format("{}: {}", place(origin_, node), what), line_of(node));
  }
  void add(const std::string& what) { faults_.add(fmt::format("{}: {}", origin_, what)); }

  template <typename Settings>
  void read(const toml::table& table, const std::string& name, Settings& settings) {
    read_table(table, name, origin_, faults_, [&](auto&& visit) { for_each_option(settings, visit); });
  }

  void read_settings() {
    const toml::node* node = root_.get("cluster");
    if (node == nullptr) return;
    if (!node->is_table()) return add(*node, "[cluster] must be a table");
    settings_ = node->as_table();
    read(*settings_, "cluster", cluster_.settings);
  }

  void read_links() {
    const toml::node* node = root_.get("links");
    if (node == nullptr) return;
    if (!node->is_table()) return add(*node, "links must be tables, [links.NAME]");
    std::vector<std::pair<int64_t, LinkClass>> classes;  // in the order of the file
    for (const auto& [name, entry] : *node->as_table()) {
      LinkClass link;
      link.name = name.str();
      if (!is_bare_key(link.name)) {
        add(entry, fmt::format("[links] has a class \"{}\"; give it a name of letters, digits, - and _",
                               printable(link.name)));
        continue;
      }
      if (!entry.is_table()) {
        add(entry, fmt::format("[links] {} must be a table, [links.{}]", link.name, link.name));
        continue;
      }
      read(*entry.as_table(), fmt::format("links.{}", link.name), link);
      if (!entry.as_table()->contains("bandwidth")) {
        add(entry, fmt::format("[links.{}] bandwidth is missing; give bytes a second", link.name));
      }
      classes.emplace_back(line_of(entry), std::move(link));
    }
    std::ranges::stable_sort(classes, {}, [](const auto& entry) { return entry.first; });
    for (auto& [line, link] : classes) cluster_.links.push_back(std::move(link));
  }

  // Calls read(table) for every table of [[name]].
  template <typename Read>
  void each_table(const std::string& name, Read&& read) {
    const toml::node* node = root_.get(name);
    if (node == nullptr) return;
    const toml::array* entries = node->as_array();
    if (entries == nullptr) return add(*node, fmt::format("{} must be tables, [[{}]]", name, name));
    for (const toml::node& entry : *entries) {
      if (const toml::table* table = entry.as_table()) {
        read(*table);
      } else {
        add(entry, fmt::format("{} must be tables, [[{}]]", name, name));
      }
    }
  }

  void read_hosts() {
    std::set<std::string> names;
    each_table("hosts", [&](const toml::table& table) {
      Host host;
      read(table, "hosts", host);
      if (host.name.empty()) {
        add(table, "[[hosts]] name is missing");
      } else if (!names.insert(host.name).second) {
        add(table,
            fmt::format("[[hosts]] name \"{}\" is used twice; give each host a name of its own", printable(host.name)));
      }
      if (!table.contains("workers")) add(table, "[[hosts]] workers is missing; give how many it can run");
      if (!host.memory.empty() && !parse_bytes(host.memory)) {
        add(*table.get("memory"), fmt::format("[[hosts]] memory is \"{}\", which is not a size; give for example "
                                              "\"8GiB\" or \"500MiB\"",
                                              printable(host.memory)));
      }
      cluster_.hosts.push_back(std::move(host));
    });
    if (cluster_.hosts.empty()) return add("has no host; give each as [[hosts]], with name and workers");
    if (cluster_.workers() > kMaxClusterWorkers) {
      add(fmt::format("has {} workers; give up to {}", cluster_.workers(), kMaxClusterWorkers));
    }
  }

  void read_groups() {
    std::vector<std::string> names;
    for (const Host& host : cluster_.hosts) names.push_back(host.name);
    const std::set<std::string> known(names.begin(), names.end());
    each_table("groups", [&](const toml::table& table) {
      HostGroup group;
      read(table, "groups", group);
      std::set<std::string> members;
      for (const std::string& name : group.hosts) {
        if (known.count(name) == 0) {
          add(*table.get("hosts"), fmt::format("[[groups]] hosts has \"{}\", and no host of that name is there{}",
                                               printable(name), suggestion(name, names)));
        } else if (!members.insert(name).second) {
          add(*table.get("hosts"), fmt::format("[[groups]] hosts has \"{}\" twice", printable(name)));
        }
      }
      if (group.hosts.size() < 2)
        add(table, "[[groups]] has fewer than two hosts; name all hosts that its links connect");
      if (group.links.empty()) {
        add(table, "[[groups]] links is missing; give the class of the links between its hosts");
      } else {
        check_class(table.get("links"), "[[groups]] links", group.links);
      }
      cluster_.groups.push_back(std::move(group));
    });
  }

  void check_class(const toml::node* node, const std::string& what, const std::string& name) {
    std::vector<std::string> names;
    for (const LinkClass& link : cluster_.links) names.push_back(link.name);
    if (std::ranges::find(names, name) != names.end()) return;
    const std::string wrong = fmt::format("{} is \"{}\", and no [links.{}] is there{}", what, printable(name),
                                          printable(name), names.empty() ? "" : suggestion(name, names));
    node == nullptr ? add(wrong) : add(*node, wrong);
  }

  // A class that the settings name must exist; one that is needed must be named.
  void check_classes() {
    const ClusterSettings& settings = cluster_.settings;
    const auto check = [&](const char* key, const std::string& name, bool needed, const std::string& why) {
      if (!name.empty()) {
        check_class(settings_ == nullptr ? nullptr : settings_->get(key), fmt::format("[cluster] {}", key), name);
      } else if (needed) {
        add(fmt::format("[cluster] {} is missing, and {}; give the class of the links between them", key, why));
      }
    };
    const bool several = std::ranges::any_of(
        cluster_.hosts, [&](const Host& host) { return host.workers > settings.workers_per_process; });
    check("within_process", settings.within_process, false, "");
    check("within_host", settings.within_host, several, "a host has several processes");
    check("between_hosts", settings.between_hosts, cluster_.hosts.size() > 1,
          fmt::format("there are {} hosts", cluster_.hosts.size()));
  }

  void check_processes() {
    const int64_t together = cluster_.settings.workers_per_process;
    for (const Host& host : cluster_.hosts) {
      if (host.workers % together == 0) continue;
      add(fmt::format("host \"{}\" has {} workers, which is not a multiple of [cluster] workers_per_process, {}",
                      printable(host.name), host.workers, together));
    }
  }

  const toml::table& root_;
  const std::string& origin_;
  const toml::table* settings_ = nullptr;
  Cluster cluster_;
  Faults faults_;
};

// The keys that differ from `defaults`, and those in `always`.
template <typename Settings>
std::string lines_of(const Settings& settings, const Settings& defaults, const std::set<std::string>& always = {}) {
  std::map<std::string, std::string> usual;
  for_each_option(defaults, [&](const char* key, const auto& value, auto&&...) { usual[key] = toml_value(value); });
  std::string text;
  for_each_option(settings, [&](const char* key, const auto& value, auto&&...) {
    const std::string written = toml_value(value);
    if (written != usual[key] || always.count(key) > 0) text += fmt::format("{} = {}\n", key, written);
  });
  return text;
}

// Rows of a table in Markdown.
template <typename Settings>
std::string describe(const std::string& table) {
  std::string text;
  const Settings defaults;
  for_each_option(defaults, [&](const char* key, const auto& value, const Range&, const char* meaning) {
    using T = std::remove_cvref_t<decltype(value)>;
    text += fmt::format("| `{}` `{}` | {} | `{}` | {} |\n", table, key, type_name<T>(), toml_value(value), meaning);
  });
  return text;
}

}  // namespace

int64_t Host::memory_bytes() const {
  return parse_bytes(memory).value_or(0);
}

int64_t Cluster::workers() const {
  int64_t sum = 0;
  for (const Host& host : hosts) sum += host.workers;
  return sum;
}

Cluster parse_cluster(std::string_view toml, const std::string& origin) {
  const toml::table root = parse_toml(toml, origin);
  return Reader(root, origin).read();
}

Cluster load_cluster(const std::filesystem::path& path) {
  return parse_cluster(read_file(path), path.string());
}

std::string to_toml(const Cluster& cluster) {
  std::string text = "[cluster]\n" + lines_of(cluster.settings, ClusterSettings{});
  for (const LinkClass& link : cluster.links) {
    text += fmt::format("\n[links.{}]\n{}", link.name, lines_of(link, LinkClass{}, {"latency", "bandwidth"}));
  }
  for (const Host& host : cluster.hosts) {
    text += fmt::format("\n[[hosts]]\n{}", lines_of(host, Host{}, {"name", "workers"}));
  }
  for (const HostGroup& group : cluster.groups) {
    text += fmt::format("\n[[groups]]\n{}", lines_of(group, HostGroup{}));
  }
  return text;
}

Cluster first_hosts(const Cluster& cluster, size_t hosts) {
  Cluster first = cluster;
  first.hosts.resize(std::min(hosts, first.hosts.size()));
  std::set<std::string> names;
  for (const Host& host : first.hosts) names.insert(host.name);
  for (HostGroup& group : first.groups) {
    std::erase_if(group.hosts, [&](const std::string& name) { return names.count(name) == 0; });
  }
  return first;
}

std::string describe_cluster() {
  return "| key | value | default | meaning |\n|---|---|---|---|\n" + describe<ClusterSettings>("[cluster]") +
         describe<LinkClass>("[links.NAME]") + describe<Host>("[[hosts]]") + describe<HostGroup>("[[groups]]");
}

}  // namespace gyre
