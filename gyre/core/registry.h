// A registry of all components of one sort: schedules, optimizers or models. Code that needs a property of a component
// reads its entry; none compares names.
#pragma once

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {

// Entries have a `name` and stay in the order in which they were added. Add entries first thing in main, from one
// thread. Entries may have `const char* missing() const`: the name of a member that is needed and null, or null.
template <typename Entry>
class Registry {
 public:
  Registry(std::string sort, std::vector<Entry> builtins) : sort_(std::move(sort)) {
    for (Entry& entry : builtins) add(std::move(entry));
  }

  // Throws std::logic_error for a name that is there already, and for an entry without a member that is needed.
  void add(Entry entry) {
    if constexpr (requires { entry.missing(); }) {
      if (const char* member = entry.missing()) throw std::logic_error(sort_ + " " + entry.name + " has no " + member);
    }
    if (find(entry.name) != nullptr) throw std::logic_error(sort_ + " " + entry.name + " is registered twice");
    entries_.push_back(std::move(entry));
  }

  const Entry* find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }
  // Throws InputError for an unknown name, with the nearest known one.
  const Entry& at(const std::string& name) const {
    if (const Entry* entry = find(name)) return *entry;
    throw InputError(sort_ + " '" + printable(name) + "' is unknown" + suggestion(name, names()));
  }

  const std::deque<Entry>& all() const { return entries_; }  // a deque, so that add() moves no entry
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

 private:
  std::string sort_;
  std::deque<Entry> entries_;
};

}  // namespace gyre
