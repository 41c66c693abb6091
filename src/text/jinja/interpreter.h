// Walks the syntax tree of a template and writes its text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/scope.h"

namespace sluice::jinja {

struct LoopObject;

inline constexpr int kMaxMacroDepth = 100;
// Statements and expressions inside each other, macros included: bounds the C++ stack.
inline constexpr int kMaxNesting = 1000;

/// One render of one template. The template must outlive it.
class Interpreter : public Runtime {
 public:
  explicit Interpreter(const Template& parsed);
  ~Interpreter() override;

  /// Gives the template a variable; shadows a global function of that name.
  void set_variable(std::string_view name, const Value& value);
  /// The rendered text. Throws Failure; line() then says where. May be called once.
  std::string render();
  int line() const { return line_; }

  Value call_macro(const MacroStmt& macro, const std::shared_ptr<Scope>& definition,
                   const Arguments& arguments);
  /// The body of a recursive loop over `items`, `depth` loops deep (1 is the outermost).
  Value run_recursive(const ForStmt& loop, const std::shared_ptr<Scope>& outer, const Value& items,
                      int depth);

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class Nested;
  class Capture;
  class InScope;

  Flow execute(const Body& body);
  Flow execute(const Stmt& statement);
  Flow execute_if(const IfStmt& statement);
  Flow execute_for(const ForStmt& statement, const Value& iterable, int depth);
  bool execute_iterations(const ForStmt& statement, LoopObject& loop, const Value& loop_value);
  Flow execute_with(const WithStmt& statement);
  void execute_set(const SetStmt& statement);
  Flow execute_block(const BlockStmt& statement);
  void execute_call_block(const CallBlockStmt& statement);
  ValueList loop_items(const ForStmt& statement, const Value& iterable);
  void assign(const Target& target, const Value& value);
  void write(std::string_view text);
  Value macro_value(const MacroStmt& macro);
  void bind_parameters(const MacroStmt& macro, const Arguments& arguments, Scope& scope);
  void bind_rest(const MacroStmt& macro, const Arguments& arguments, Scope& scope);
  Symbol symbol_of(std::string_view name) const;
  static void set_named(Scope& scope, Symbol symbol, const Value& value);

  Value evaluate(const Expr& expression);
  Value evaluate_name(const NameExpr& expression);
  Value evaluate_items(const ItemsExpr& expression);
  Value evaluate_dict(const DictExpr& expression);
  Value evaluate_arithmetic(const ArithmeticExpr& expression);
  Value evaluate_compare(const CompareExpr& expression);
  Value evaluate_conditional(const ConditionalExpr& expression);
  Value evaluate_slice(const SliceExpr& expression);
  Value evaluate_call(const CallExpr& expression);
  Value evaluate_filter(const ApplyExpr& expression, const Value* block);
  Value evaluate_test(const ApplyExpr& expression);
  Value evaluate_optional(const ExprPtr& expression);
  Arguments evaluate_arguments(const CallArguments& arguments);

  const Template& template_;
  std::shared_ptr<Scope> scope_;
  Symbol loop_symbol_;
  std::vector<std::shared_ptr<Scope>>
      captured_;  // scopes that macros hold, which hold the macros: emptied at the end
  std::string* output_ = nullptr;
  int line_ = 1;
  int nesting_ = 0;
  int macro_depth_ = 0;
};

}  // namespace sluice::jinja
