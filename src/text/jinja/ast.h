// The syntax tree of a template. Immutable after parsing; several renders may walk it at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

using Symbol = int32_t;  // index into Template::names

enum class ExprKind : uint8_t {
  kLiteral,
  kName,
  kList,
  kTuple,
  kDict,
  kUnary,
  kArithmetic,
  kConcat,
  kCompare,
  kLogic,
  kNot,
  kConditional,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kFilter,
  kTest,
};

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  virtual ~Expr() = default;
  ExprKind kind;
  int line;
};
using ExprPtr = std::unique_ptr<const Expr>;

struct CallArguments {
  struct Named {
    std::string name;
    ExprPtr value;
  };
  std::vector<ExprPtr> positional;
  std::vector<Named> named;
  ExprPtr positional_pack;  // *expression, or null
  ExprPtr named_pack;       // **expression, or null
};

struct LiteralExpr : Expr {
  LiteralExpr(int l, Value v) : Expr(ExprKind::kLiteral, l), value(std::move(v)) {}
  Value value;
};
struct NameExpr : Expr {
  NameExpr(int l, Symbol s) : Expr(ExprKind::kName, l), symbol(s) {}
  Symbol symbol;
};
/// A list, a tuple, the operands of `~`, or those of `and` / `or`.
struct ItemsExpr : Expr {
  using Expr::Expr;
  std::vector<ExprPtr> items;
  bool is_and = false;  // kLogic only
};
struct DictExpr : Expr {
  explicit DictExpr(int l) : Expr(ExprKind::kDict, l) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
/// kNot, and kUnary with `negative` for - and without for +.
struct UnaryExpr : Expr {
  UnaryExpr(ExprKind k, int l, ExprPtr e, bool n) : Expr(k, l), operand(std::move(e)), negative(n) {}
  ExprPtr operand;
  bool negative;
};
enum class ArithmeticOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
/// Operators of one precedence, left to right: flat, so that a long sum does not nest.
struct ArithmeticExpr : Expr {
  using Expr::Expr;
  ExprPtr first;
  std::vector<std::pair<ArithmeticOp, ExprPtr>> rest;
};
enum class CompareOp : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
/// a < b < c, with Python's meaning.
struct CompareExpr : Expr {
  explicit CompareExpr(int l) : Expr(ExprKind::kCompare, l) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct ConditionalExpr : Expr {
  explicit ConditionalExpr(int l) : Expr(ExprKind::kConditional, l) {}
  ExprPtr condition, value, otherwise;  // otherwise may be null
};
struct AttributeExpr : Expr {
  AttributeExpr(int l, ExprPtr o, std::string n)
      : Expr(ExprKind::kAttribute, l), object(std::move(o)), name(std::move(n)) {}
  ExprPtr object;
  std::string name;
};
struct SubscriptExpr : Expr {
  SubscriptExpr(int l, ExprPtr o, ExprPtr i)
      : Expr(ExprKind::kSubscript, l), object(std::move(o)), index(std::move(i)) {}
  ExprPtr object, index;
};
struct SliceExpr : Expr {
  SliceExpr(int l, ExprPtr o) : Expr(ExprKind::kSlice, l), object(std::move(o)) {}
  ExprPtr object, start, stop, step;  // the last three may be null
};
struct CallExpr : Expr {
  CallExpr(int l, ExprPtr c) : Expr(ExprKind::kCall, l), callee(std::move(c)) {}
  ExprPtr callee;
  CallArguments arguments;
};
/// A filter, whose input is null where a block gives it, or a test.
struct ApplyExpr : Expr {
  ApplyExpr(ExprKind k, int l, ExprPtr i, std::string n)
      : Expr(k, l), input(std::move(i)), name(std::move(n)) {}
  ExprPtr input;
  std::string name;
  CallArguments arguments;
  bool negated = false;  // tests only
};

enum class StmtKind : uint8_t {
  kData,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kBody,
  kBreak,
  kContinue,
};

struct Stmt {
  Stmt(StmtKind k, int l) : kind(k), line(l) {}
  virtual ~Stmt() = default;
  StmtKind kind;
  int line;
};
using StmtPtr = std::unique_ptr<const Stmt>;
using Body = std::vector<StmtPtr>;

/// What `set` and `for` assign to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  Symbol symbol = -1;
  std::string attribute;      // not empty: an attribute of the namespace `symbol`
  std::vector<Target> parts;  // not empty or is_tuple: unpacking
  bool is_tuple = false;
};

struct DataStmt : Stmt {
  DataStmt(int l, std::string t) : Stmt(StmtKind::kData, l), text(std::move(t)) {}
  std::string text;
};
struct OutputStmt : Stmt {
  OutputStmt(int l, ExprPtr v) : Stmt(StmtKind::kOutput, l), value(std::move(v)) {}
  ExprPtr value;
};
struct IfStmt : Stmt {
  explicit IfStmt(int l) : Stmt(StmtKind::kIf, l) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStmt : Stmt {
  explicit ForStmt(int l) : Stmt(StmtKind::kFor, l) {}
  Target target;
  ExprPtr iterable, filter;  // filter may be null
  Body body, otherwise;
  bool recursive = false;
};
struct SetStmt : Stmt {
  explicit SetStmt(int l) : Stmt(StmtKind::kSet, l) {}
  Target target;
  ExprPtr value;
};
/// {% set x %}...{% endset %} and {% filter x %}...{% endfilter %}: a body through filters, to a target or
/// the output.
struct BlockStmt : Stmt {
  using Stmt::Stmt;
  Target target;
  ExprPtr filter;  // a chain of ApplyExpr that ends in a null input; may be null
  Body body;
};
struct Parameter {
  Symbol symbol;
  std::string name;
  ExprPtr default_value;  // may be null
};
struct MacroStmt : Stmt {
  using Stmt::Stmt;
  Symbol symbol = -1;  // -1: the body of a call block
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool takes_caller = false;  // the body uses the name, so the call accepts it
  bool takes_varargs = false;
  bool takes_kwargs = false;
};
struct CallBlockStmt : Stmt {
  explicit CallBlockStmt(int l) : Stmt(StmtKind::kCallBlock, l) {}
  ExprPtr call;  // a CallExpr
  std::unique_ptr<const MacroStmt> caller;
};
struct WithStmt : Stmt {
  explicit WithStmt(int l) : Stmt(StmtKind::kWith, l) {}
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Body body;
};
/// The body of a tag that only wraps it, such as `generation`.
struct BodyStmt : Stmt {
  explicit BodyStmt(int l) : Stmt(StmtKind::kBody, l) {}
  Body body;
};
struct JumpStmt : Stmt {
  using Stmt::Stmt;  // kBreak, kContinue
};

/// A parsed template.
struct Template {
  std::vector<std::string> names;  // of symbols
  Body body;
};

}  // namespace sluice::jinja
