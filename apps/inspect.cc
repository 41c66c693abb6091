// sluice inspect: what a checkpoint folder holds, from its headers alone.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/model_place.h"
#include "base/printable.h"
#include "base/units.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/inventory.h"

namespace sluice::apps {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  ModelPlace model;
  bool json = false;
  bool tensors = false;
};

// The fields of config.json that describe any Mixture-of-Experts model; -1 or empty where it says nothing.
struct Summary {
  std::string architecture, family, quantization;
  int64_t layers = -1, experts = -1, experts_per_token = -1;
  Inventory inventory;
};

Summary summarize(const Checkpoint& checkpoint) {
  const Config& top = checkpoint.config();
  // Models with a vision part keep the language model's fields one level down.
  const Config text = top.has({"text_config"}) ? top.object({"text_config"}) : top;
  Summary summary;
  const auto architectures = top.strings({"architectures"});
  if (!architectures.empty()) summary.architecture = architectures.front();
  summary.family = top.string_or({"model_type"}, "");
  const Quantization& quantization = checkpoint.quantization();
  summary.quantization = quantization.method;
  if (!quantization.algo.empty()) summary.quantization += " " + quantization.algo;
  summary.layers = text.integer_or({"num_hidden_layers"}, 0, 1 << 20, -1);
  summary.experts = text.integer_or({"num_experts", "num_local_experts", "n_routed_experts"}, 0, 1 << 20, -1);
  summary.experts_per_token =
      text.integer_or({"num_experts_per_tok", "num_experts_per_token"}, 0, 1 << 20, -1);
  summary.inventory = take_inventory(checkpoint);
  return summary;
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "-" : text;
}

using Row = std::vector<std::string>;

// First column to the left, the others to the right, two spaces between.
void print_table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    std::printf("%s\n", line.c_str());
  }
}

Row amount_row(std::string_view name, const Inventory::Amount& amount, uint64_t total_bytes) {
  char share[16];
  const double percent =
      total_bytes == 0 ? 0.0 : 100.0 * static_cast<double>(amount.bytes) / static_cast<double>(total_bytes);
  std::snprintf(share, sizeof share, "%.1f %%", percent);
  return {std::string(name), std::to_string(amount.tensors), format_bytes(amount.bytes), share};
}

void print_summary(const Checkpoint& checkpoint, const Summary& summary) {
  const auto say = [](const char* label, const std::string& value) {
    std::printf("%-15s %s\n", label, printable(value).c_str());
  };
  const auto number = [](int64_t value) { return value < 0 ? std::string("-") : std::to_string(value); };
  const Inventory& inventory = summary.inventory;
  say("model", checkpoint.folder().string());
  say("architecture", summary.architecture.empty() ? "-" : summary.architecture);
  say("family", summary.family.empty() ? "-" : summary.family);
  say("layers",
      number(summary.layers) + ", " + std::to_string(inventory.moe_layers) + " of them with experts");
  say("experts", number(summary.experts) + " a layer, " + number(summary.experts_per_token) + " a token");
  say("expert formats", joined(inventory.expert_formats));
  say("quantisation", summary.quantization.empty() ? "-" : summary.quantization);

  std::vector<Row> rows = {{"kind", "tensors", "bytes", "share"}};
  for (const auto& [kind, amount] : inventory.by_kind)
    rows.push_back(amount_row(name_of(kind), amount, inventory.total.bytes));
  rows.push_back(amount_row("total", inventory.total, inventory.total.bytes));
  rows.push_back({});
  rows.push_back({"type", "tensors", "bytes", "share"});
  for (const auto& [type, amount] : inventory.by_type)
    rows.push_back(amount_row(name_of(type), amount, inventory.total.bytes));
  std::printf("\n");
  print_table(rows);
}

void print_tensors(const Checkpoint& checkpoint) {
  std::vector<Row> rows = {{"tensor", "type", "shape", "bytes"}};
  for (const Tensor* tensor : checkpoint.tensors()) {
    rows.push_back({printable(tensor->name), std::string(name_of(tensor->dtype)), format_shape(tensor->shape),
                    format_bytes(tensor->bytes.size())});
  }
  std::printf("\n");
  print_table(rows);
}

ordered_json to_json(const Inventory::Amount& amount) {
  return {{"tensors", amount.tensors}, {"bytes", amount.bytes}};
}

void print_json(const Checkpoint& checkpoint, const Summary& summary, bool tensors) {
  const auto number = [](int64_t value) { return value < 0 ? ordered_json() : ordered_json(value); };
  ordered_json out;
  out["model"] = checkpoint.folder().string();
  out["architecture"] = summary.architecture;
  out["family"] = summary.family;
  out["layers"] = number(summary.layers);
  out["moe_layers"] = summary.inventory.moe_layers;
  out["experts"] = number(summary.experts);
  out["experts_per_token"] = number(summary.experts_per_token);
  out["expert_formats"] = summary.inventory.expert_formats;
  out["quantization"] = summary.quantization;
  out["total"] = to_json(summary.inventory.total);
  out["by_kind"] = out["by_type"] = ordered_json::object();
  for (const auto& [kind, amount] : summary.inventory.by_kind)
    out["by_kind"][std::string(name_of(kind))] = to_json(amount);
  for (const auto& [type, amount] : summary.inventory.by_type)
    out["by_type"][std::string(name_of(type))] = to_json(amount);
  if (tensors) {
    out["tensors"] = ordered_json::array();
    for (const Tensor* tensor : checkpoint.tensors()) {
      out["tensors"].push_back({{"name", tensor->name},
                                {"type", name_of(tensor->dtype)},
                                {"shape", tensor->shape},
                                {"bytes", tensor->bytes.size()}});
    }
  }
  std::printf("%s\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void run_inspect(const InspectOptions& options) {
  const Checkpoint checkpoint = Checkpoint::open(options.model.folder());
  const Summary summary = summarize(checkpoint);
  if (options.json) return print_json(checkpoint, summary, options.tensors);
  print_summary(checkpoint, summary);
  if (options.tensors) print_tensors(checkpoint);
}

}  // namespace

void add_inspect(Command& program) {
  auto options = std::make_shared<InspectOptions>();
  Command command = program.subcommand("inspect", "Show what a checkpoint holds, without loading it");
  options->model.add_to(command, "the checkpoint").required();
  command.flag("--json", options->json, "Print JSON");
  command.flag("--tensors", options->tensors, "List each tensor");
  command.action([options] { run_inspect(*options); });
}

}  // namespace sluice::apps
