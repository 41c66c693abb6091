// Bytes of a residency file; all numbers are little-endian.
//
//   magic[8] | version u32 | L u32 | E u32 | K u32 | fingerprint u64 | length of the family's name u32
//   | number of experts u32 | name | n x { layer u16, expert u16 } | checksum u64 of all before it
#include "experts/residency_file.h"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "experts/trace_format.h"

namespace sluice {
namespace {

using trace_format::append;
using trace_format::load;

constexpr std::string_view kMagic = "SLRESID\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 40, kChecksumBytes = 8;

std::string describe(const ResidencyModel& model) {
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(model.fingerprint));
  return model.family + " with " + std::to_string(model.layers) + " MoE layers of " +
         std::to_string(model.experts) + " experts, top " + std::to_string(model.top_k) + ", checkpoint " +
         hex;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what,
                         ErrorCode code = ErrorCode::kBadFile) {
  throw Error(code, path.string() + ": " + what + "; remove it or name another file: it is written anew");
}

}  // namespace

void write_residency(const std::filesystem::path& path, const ResidencyModel& model,
                     std::span<const Resident> residents) {
  std::vector<std::byte> bytes;
  const auto text = [&](std::string_view piece) {
    const auto raw = std::as_bytes(std::span(piece));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  text(kMagic);
  append(bytes, kVersion);
  for (const int32_t number : {model.layers, model.experts, model.top_k}) append(bytes, number);
  append(bytes, model.fingerprint);
  append(bytes, static_cast<uint32_t>(model.family.size()));
  append(bytes, static_cast<uint32_t>(residents.size()));
  text(model.family);
  for (const Resident& resident : residents) {
    append(bytes, static_cast<uint16_t>(resident.layer));
    append(bytes, static_cast<uint16_t>(resident.expert));
  }
  append(bytes, fnv1a(bytes));
  write_file_atomically(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool is_residency_file(const std::filesystem::path& path) {
  std::string start(kMagic.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(start.data(), std::ssize(start)) && start == kMagic;
}

std::vector<Resident> read_residency(const std::filesystem::path& path, const ResidencyModel& expected) {
  const MappedFile file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file.bytes();
  const auto magic = std::as_bytes(std::span(kMagic));
  if (bytes.size() < magic.size() || !std::equal(magic.begin(), magic.end(), bytes.begin())) {
    refuse(path, "is no list of resident experts");
  }
  const auto cut = [&](size_t needed) {
    refuse(path, "cut short: " + std::to_string(bytes.size()) + " of " + std::to_string(needed) + " bytes");
  };
  if (bytes.size() < kHeaderBytes) cut(kHeaderBytes);
  const auto version = load<uint32_t>(bytes, 8);
  if (version != kVersion) {
    refuse(path,
           "version " + std::to_string(version) + " of the format; this program reads version " +
               std::to_string(kVersion),
           ErrorCode::kUnsupported);
  }
  const size_t name_bytes = load<uint32_t>(bytes, 32), count = load<uint32_t>(bytes, 36);
  const size_t all = kHeaderBytes + name_bytes + 4 * count + kChecksumBytes;
  if (bytes.size() < all) cut(all);
  if (bytes.size() > all) refuse(path, "goes on after its end");
  if (fnv1a(bytes.first(all - kChecksumBytes)) != load<uint64_t>(bytes, all - kChecksumBytes)) {
    refuse(path, "damaged: its checksum does not match");
  }
  ResidencyModel found;
  found.family.assign(reinterpret_cast<const char*>(bytes.data()) + kHeaderBytes, name_bytes);
  found.layers = load<int32_t>(bytes, 12);
  found.experts = load<int32_t>(bytes, 16);
  found.top_k = load<int32_t>(bytes, 20);
  found.fingerprint = load<uint64_t>(bytes, 24);
  if (found != expected) {
    refuse(path, "holds experts of another model: " + describe(found) + ", not " + describe(expected));
  }
  std::vector<Resident> residents;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = kHeaderBytes + name_bytes + 4 * i;
    residents.push_back({load<uint16_t>(bytes, at), load<uint16_t>(bytes, at + 2)});
    if (residents.back().layer >= found.layers || residents.back().expert >= found.experts) {
      refuse(path, "names an expert that the model does not have");
    }
  }
  return residents;
}

std::vector<Resident> popularity(const Trace& trace) {
  const auto layers = trace.model.layers.size();
  const auto experts = static_cast<size_t>(trace.model.experts);
  const bool has_decode = std::any_of(trace.steps.begin(), trace.steps.end(),
                                      [](const TraceStep& step) { return step.kind == StepKind::kDecode; });
  std::vector<uint64_t> uses(layers * experts);
  for (const TraceStep& step : trace.steps) {
    if (has_decode && step.kind != StepKind::kDecode) continue;
    for (size_t l = 0; l < layers; ++l) {
      for (const uint16_t id : trace.ids_of(step, l)) {
        if (id != Trace::kNoExpert) ++uses[l * experts + id];
      }
    }
  }
  std::vector<size_t> order;
  for (size_t id = uses.size(); id-- > 0;) {
    if (uses[id] > 0) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return uses[a] < uses[b]; });
  std::vector<Resident> result;
  for (const size_t id : order) {
    result.push_back({static_cast<int32_t>(id / experts), static_cast<int32_t>(id % experts)});
  }
  return result;
}

std::vector<int64_t> hottest_layers(std::span<const Resident> residents, int64_t layers) {
  std::vector<int64_t> resident(static_cast<size_t>(layers)), order(static_cast<size_t>(layers));
  for (const Resident& r : residents) ++resident.at(static_cast<size_t>(r.layer));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return resident[static_cast<size_t>(a)] < resident[static_cast<size_t>(b)];
  });
  return order;
}

}  // namespace sluice
