// Variables of one block of a template; a block sees those of the blocks around it and changes only its own.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

class Scope {
  template <class Entries>
  static auto place_of(Entries& entries, Symbol symbol) {
    return std::lower_bound(entries.begin(), entries.end(), symbol,
                            [](const auto& entry, Symbol s) { return entry.first < s; });
  }

 public:
  explicit Scope(std::shared_ptr<const Scope> parent) : parent_(std::move(parent)) {}

  void set(Symbol symbol, Value value) {
    const auto it = place_of(variables_, symbol);
    if (it != variables_.end() && it->first == symbol) {
      it->second = std::move(value);
    } else {
      variables_.insert(it, {symbol, std::move(value)});
    }
  }

  /// Null where neither this scope nor one around it has the variable.
  const Value* find(Symbol symbol) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      const auto it = place_of(scope->variables_, symbol);
      if (it != scope->variables_.end() && it->first == symbol) return &it->second;
    }
    return nullptr;
  }

  void clear() { variables_.clear(); }

 private:
  using Variables = std::vector<std::pair<Symbol, Value>>;  // sorted by symbol
  std::shared_ptr<const Scope> parent_;
  Variables variables_;
};

}  // namespace sluice::jinja
