// Options: the settings of a component. A component declares each of its options once, in a struct that lists them:
//
//   struct MuonSettings {
//     double matrix_lr_ratio = 20;
//     template <typename Self, typename Visit>
//     static void each_option(Self& self, Visit&& visit) {
//       visit("matrix_lr_ratio", self.matrix_lr_ratio, between(0, 1e6), "learning rate of matrices, in units of lr");
//     }
//     bool operator==(const MuonSettings&) const = default;
//   };
//
// Key, type, default, range and meaning stand there and nowhere else: files, overrides, help, the reference in docs/
// and the Python package are made from it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gyre {

// The allowed values of an option.
struct Range {
  double least = -1e300, most = 1e300;
  std::vector<std::string> choices = {};  // for strings; empty: any
};
inline Range at_least(double least) {
  return {.least = least};
}
inline Range between(double least, double most) {
  return {.least = least, .most = most};
}
inline Range one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}

// The types that an option can have.
using OptionField = std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::vector<double>*,
                                 std::vector<std::string>*>;

// Two options that contradict each other, or one whose range depends on another.
struct OptionFault {
  std::vector<std::string> keys;  // the fault is reported at the first of these that was given
  std::string what;               // the message after the first key: "is 7; give less than interval, 5"
};

// Any struct that declares options, behind one type: copied, compared, visited.
class OptionTable {
 public:
  OptionTable() = default;  // no options
  template <typename Settings>
  requires(!std::same_as<std::remove_cvref_t<Settings>, OptionTable>)
      // NOLINTNEXTLINE(google-explicit-constructor): a parameter of this type accepts any settings
      OptionTable(Settings settings)
      : held_(std::make_unique<Held<Settings>>(std::move(settings))) {}
  OptionTable(const OptionTable& other) : held_(other.held_ ? other.held_->clone() : nullptr) {}
  OptionTable(OptionTable&&) noexcept = default;
  OptionTable& operator=(OptionTable other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~OptionTable() = default;

  bool empty() const { return held_ == nullptr; }
  // The struct it holds if that is a `Settings`, else null.
  template <typename Settings>
  Settings* as() {
    auto* held = dynamic_cast<Held<Settings>*>(held_.get());
    return held == nullptr ? nullptr : &held->settings;
  }
  // The `Settings` it holds; the defaults if the table is empty. Throws std::logic_error if it holds another struct.
  template <typename Settings>
  Settings get() const {
    if (held_ == nullptr) return {};
    const auto* held = dynamic_cast<const Held<Settings>*>(held_.get());
    if (held == nullptr) throw std::logic_error("a table of options is asked for settings that it does not hold");
    return held->settings;
  }
  // The same as get(), to modify.
  template <typename Settings>
  Settings& edit() {
    if (held_ == nullptr) *this = Settings();
    Settings* const settings = as<Settings>();
    if (settings == nullptr) throw std::logic_error("a table of options is asked for settings that it does not hold");
    return *settings;
  }

  // Calls visit(key, field, range, meaning) for every option, in the order of the declaration.
  template <typename Visit>
  void each_option(Visit&& visit) {
    if (held_ == nullptr) return;
    held_->each([&](const char* key, OptionField field, const Range& range, const char* meaning) {
      std::visit([&](auto* value) { visit(key, *value, range, meaning); }, field);
    });
  }
  template <typename Visit>
  void each_option(Visit&& visit) const {
    OptionTable copy = *this;
    copy.each_option([&](const char* key, const auto& field, const Range& range, const char* meaning) {
      visit(key, field, range, meaning);
    });
  }

  bool operator==(const OptionTable& other) const {
    if (held_ == nullptr || other.held_ == nullptr) return held_ == other.held_;
    return held_->equals(*other.held_);
  }

 private:
  using Each = std::function<void(const char*, OptionField, const Range&, const char*)>;
  struct HeldBase {
    virtual ~HeldBase() = default;
    virtual std::unique_ptr<HeldBase> clone() const = 0;
    virtual bool equals(const HeldBase& other) const = 0;
    virtual void each(const Each& visit) = 0;
  };
  template <typename Settings>
  struct Held final : HeldBase {
    explicit Held(Settings given) : settings(std::move(given)) {}
    std::unique_ptr<HeldBase> clone() const override { return std::make_unique<Held>(settings); }
    bool equals(const HeldBase& other) const override {
      const auto* same = dynamic_cast<const Held*>(&other);
      return same != nullptr && same->settings == settings;
    }
    void each(const Each& visit) override {
      Settings::each_option(settings, [&](const char* key, auto& field, const Range& range, const char* meaning) {
        visit(key, &field, range, meaning);
      });
    }
    Settings settings;
  };

  std::unique_ptr<HeldBase> held_;
};

// Options that only one kind understands: the tables [optimizer.muon], [optimizer.basis-rotation].
class KindTables {
 public:
  KindTables() = default;
  // The options of every kind in a registry that has some, at their defaults.
  template <typename Registry>
  static KindTables of(const Registry& registry) {
    KindTables tables;
    for (const auto& kind : registry.all()) {
      if (!kind.own.empty()) tables.tables_[kind.name] = kind.own;
    }
    return tables;
  }

  // The options of a kind; an empty table if it has none.
  OptionTable of_kind(const std::string& kind) const {
    const auto found = tables_.find(kind);
    return found == tables_.end() ? OptionTable() : found->second;
  }
  // The one table that holds `Settings`, which some kind must have.
  template <typename Settings>
  Settings& get() {
    for (auto& [kind, table] : tables_) {
      if (Settings* settings = table.template as<Settings>()) return *settings;
    }
    throw std::logic_error("no kind that is registered has these settings");
  }
  // Sorted by name, so that every list of them has the same order.
  std::map<std::string, OptionTable>& tables() { return tables_; }
  const std::map<std::string, OptionTable>& tables() const { return tables_; }
  bool operator==(const KindTables&) const = default;

 private:
  std::map<std::string, OptionTable> tables_;
};

}  // namespace gyre
