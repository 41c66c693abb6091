// Differential runs over all buffers of a device.
#include "device/explored/shadow.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;

// Zero is harmless as an index; all ones are -1 as an index and NaN as a number of any format.
constexpr std::byte kPoisons[] = {std::byte{0}, std::byte{0xff}};

struct Region {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::vector<bool> readable, writable;
};

// The state of all regions.
using Image = std::vector<Bytes>;

struct Run {
  Image before, after;
  bool failed = false;
};

class Shadow {
 public:
  Shadow(std::span<const ByteRange> reads, std::span<const ByteRange> writes, const MemoryMap& memory,
         const std::function<void()>& body)
      : memory_(memory), body_(body) {
    for (const auto& [data, block] : memory.blocks()) add_region(data, block.bytes);
    for (const ByteRange& range : writes) {
      auto* data = static_cast<std::byte*>(const_cast<void*>(range.begin));
      if (range.bytes > 0 && find(data) == nullptr) add_region(data, range.bytes);
    }
    for (const ByteRange& range : reads) mark(range, &Region::readable);
    for (const ByteRange& range : writes) mark(range, &Region::writable);
  }

  std::vector<std::string> run() {
    const Image original = image();
    std::vector<Run> runs;
    for (const std::byte poison : kPoisons) runs.push_back(poisoned(original, poison, nullptr));
    Run real{original, {}};
    body_();
    real.after = image();
    std::vector<std::string> findings;
    find_write(real, findings);
    for (const Run& run : runs) find_write(run, findings);
    if (const std::string effect = effect_of_poison(real, runs); !effect.empty()) {
      findings.push_back("reads " + culprits(original, real) + "undeclared: " + effect + " depends on it");
      restore(real.after);
    }
    return findings;
  }

 private:
  void add_region(std::byte* data, size_t bytes) {
    regions_.push_back({data, bytes, std::vector<bool>(bytes), std::vector<bool>(bytes)});
  }
  Region* find(const std::byte* data) {
    for (Region& region : regions_) {
      if (data >= region.data && data < region.data + region.bytes) return &region;
    }
    return nullptr;
  }
  void mark(const ByteRange& range, std::vector<bool> Region::*flags) {
    const auto* data = static_cast<const std::byte*>(range.begin);
    for (size_t done = 0; done < range.bytes;) {
      Region* region = find(data + done);
      if (region == nullptr) return;  // host memory that only this operation knows
      const auto offset = static_cast<size_t>(data + done - region->data);
      const size_t count = std::min(range.bytes - done, region->bytes - offset);
      const auto first = (region->*flags).begin() + static_cast<std::ptrdiff_t>(offset);
      std::fill(first, first + static_cast<std::ptrdiff_t>(count), true);
      done += count;
    }
  }

  Image image() const {
    Image result;
    for (const Region& region : regions_) result.emplace_back(region.data, region.data + region.bytes);
    return result;
  }
  void restore(const Image& from) const {
    for (size_t r = 0; r < regions_.size(); ++r) {
      std::memcpy(regions_[r].data, from[r].data(), from[r].size());
    }
  }

  // Runs with the undeclared bytes of `only` (or of every region) poisoned; memory is `original` afterwards.
  Run poisoned(const Image& original, std::byte poison, const Region* only) const {
    for (const Region& region : regions_) {
      if (only != nullptr && only != &region) continue;
      for (size_t i = 0; i < region.bytes; ++i) {
        if (!region.readable[i]) region.data[i] = poison;
      }
    }
    Run run{image(), {}};
    try {
      body_();
    } catch (const std::exception&) {
      run.failed = true;
    }
    run.after = image();
    restore(original);
    return run;
  }

  void find_write(const Run& run, std::vector<std::string>& findings) const {
    for (size_t r = 0; r < regions_.size(); ++r) {
      const Region& region = regions_[r];
      for (size_t i = 0; i < region.bytes; ++i) {
        if (region.writable[i] || run.before[r][i] == run.after[r][i]) continue;
        size_t end = i + 1;
        while (end < region.bytes && !region.writable[end] && run.before[r][end] != run.after[r][end]) ++end;
        std::string text = "writes " + memory_.describe({region.data + i, end - i}) + " undeclared";
        // The runs often find the same one.
        if (std::find(findings.begin(), findings.end(), text) == findings.end()) {
          findings.push_back(std::move(text));
        }
        break;
      }
    }
  }

  // The first declared output that differs between the runs, or nothing.
  std::string effect_of_poison(const Run& real, std::span<const Run> runs) const {
    for (const Run& run : runs) {
      if (run.failed) return "whether it succeeds";
    }
    for (size_t r = 0; r < regions_.size(); ++r) {
      const Region& region = regions_[r];
      for (size_t i = 0; i < region.bytes; ++i) {
        if (!region.writable[i]) continue;
        bool untouched = real.before[r][i] == real.after[r][i], equal = true;
        for (const Run& run : runs) {
          untouched = untouched && run.before[r][i] == run.after[r][i];
          equal = equal && run.after[r][i] == real.after[r][i];
        }
        if (!untouched && !equal) return memory_.describe({region.data + i, 1});
      }
    }
    return {};
  }

  // Which buffers alone make a difference: "bytes of 'a', 'b' ".
  std::string culprits(const Image& original, const Run& real) {
    restore(original);
    std::string names;
    for (const Region& region : regions_) {
      std::vector<Run> runs;
      for (const std::byte poison : kPoisons) runs.push_back(poisoned(original, poison, &region));
      if (effect_of_poison(real, runs).empty()) continue;
      const MemoryBlock* block = memory_.find(region.data);
      names += (names.empty() ? "'" : ", '") + (block != nullptr ? block->name : "host memory") + "'";
    }
    return names.empty() ? "" : "bytes of " + names + " ";
  }

  const MemoryMap& memory_;
  const std::function<void()>& body_;
  std::vector<Region> regions_;
};

}  // namespace

std::vector<std::string> run_shadowed(std::span<const ByteRange> reads, std::span<const ByteRange> writes,
                                      const MemoryMap& memory, const std::function<void()>& body) {
  return Shadow(reads, writes, memory, body).run();
}

}  // namespace sluice
