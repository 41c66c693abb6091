// `sluice bench link`: what the link between host memory and the device gives, which is the ceiling of
// everything that streams experts; and what the slot map costs on the device.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/device_options.h"
#include "apps/usage_error.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/host_memory.h"
#include "base/units.h"
#include "experts/gather.h"
#include "experts/slot_ops.h"

namespace sluice::apps {
namespace {

struct BenchLinkOptions {
  DeviceOptions device;
  std::string bytes = "1GB";
  int64_t rounds = 7, row_bytes = 1'769'472;  // an expert of q36 in NVFP4
  bool json = false;
};

struct Row {
  std::string what;
  double median = 0, lowest = 0, highest = 0;
};

constexpr uint64_t kLeastBytes = uint64_t{64} << 20;
constexpr uint64_t kLeftFree = uint64_t{256} << 20;  // page tables, and what others need meanwhile

/// The source is page-locked host memory, the target memory of the device, which without a GPU is host memory
/// too. Throws Error kOutOfMemory.
void check_memory(const BenchLinkOptions& options, const Device& device, uint64_t bytes) {
  const auto refuse = [&](const char* place, uint64_t free, uint64_t parts, const std::string& limit) {
    const uint64_t usable = free - std::min(free, kLeftFree);
    if (bytes <= usable / parts) return;
    throw Error(ErrorCode::kOutOfMemory,
                "--bytes " + options.bytes + ": needs " + (parts > 1 ? "twice that" : "that") + " in " +
                    place + ", where " + format_bytes(free) + " are free (" + limit + "); from 64MiB to " +
                    format_bytes(usable / parts) + " would fit");
  };
  const std::optional<size_t> on_card = device.free_bytes();
  const HostMemory host = free_host_memory();
  refuse("host memory", host.free_bytes, on_card ? 1 : 2, host.limit);
  if (on_card) refuse("the GPU's memory", *on_card, 1, "of the GPU, or --gpu-memory");
}

class LinkBench {
 public:
  LinkBench(const BenchLinkOptions& options, std::unique_ptr<Device> device, uint64_t bytes)
      : rounds_(options.rounds),
        row_bytes_(static_cast<size_t>(options.row_bytes)),
        bytes_(bytes / row_bytes_ * row_bytes_),
        device_(std::move(device)),
        stream_(device_->make_stream("link", Priority::kHighest)),
        from_(device_->make_event("from")),
        to_(device_->make_event("to")),
        source_(device_->allocate(bytes_, "bench source", MemoryKind::kPinned)),
        target_(device_->allocate(bytes_, "bench target")) {
    // Touched once: a page that was never written is not there.
    auto* words = source_.as<uint32_t>();
    for (size_t i = 0; i < bytes_ / sizeof(uint32_t); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
  }

  /// Rates in bytes/s: one copy, batches of entries, the gather kernel.
  std::vector<Row> rates() {
    std::vector<Row> rows;
    rows.push_back(
        rate("plain copy", bytes_, [&] { stream_->copy("plain", target_.data(), source_.data(), bytes_); }));
    for (const size_t entry : {size_t{64} << 10, size_t{256} << 10, row_bytes_, 4 * row_bytes_}) {
      const std::vector<CopyEntry> entries = shuffled(entry);
      rows.push_back(rate("batch of " + format_bytes(entry), entries.size() * entry,
                          [&] { stream_->copy_batch("batch", entries); }));
    }
    for (const int32_t count : {1, 2, 4, 8, 32}) rows.push_back(gather(count));
    return rows;
  }

  /// Microseconds of one ensure of 8 ids among 4096 slots by how many of them miss, inside a graph where the
  /// device has graphs.
  std::vector<Row> ensures() {
    std::vector<Row> rows;
    for (const int32_t misses : {0, 4, 8}) rows.push_back(ensure(misses));
    return rows;
  }

 private:
  double time_us(const std::function<void()>& work) {
    stream_->record(*from_);
    const double start = device_->now_us();
    work();
    stream_->record(*to_);
    device_->wait(*stream_, "bench");
    const auto us = device_->elapsed_us(*from_, *to_);
    return us ? *us : device_->now_us() - start;
  }

  Row rounds(const std::string& what, const std::function<double()>& measure) {
    measure();  // warm
    std::vector<double> values;
    for (int64_t i = 0; i < rounds_; ++i) values.push_back(measure());
    std::sort(values.begin(), values.end());
    return {what, values[values.size() / 2], values.front(), values.back()};
  }
  Row rate(const std::string& what, size_t bytes, const std::function<void()>& work) {
    return rounds(what, [&] { return static_cast<double>(bytes) / time_us(work) * 1e6; });
  }

  std::vector<CopyEntry> shuffled(size_t entry) {
    std::vector<CopyEntry> entries;
    for (size_t at = 0; at + entry <= bytes_; at += entry) {
      entries.push_back({target_.as<std::byte>() + at, source_.as<std::byte>() + at, entry});
    }
    std::shuffle(entries.begin(), entries.end(), std::mt19937_64(7));
    return entries;
  }

  /// `count` rows a launch, each launch with rows of its own, as in decode.
  Row gather(int32_t count) {
    const auto all = static_cast<int32_t>(bytes_ / row_bytes_);
    const int32_t launches = std::max(1, std::min(64, all / count));
    const Buffer plans = device_->allocate_array<int32_t>(int64_t{launches} * (2 * count + 1), "bench plans");
    std::vector<int32_t> words, rows(static_cast<size_t>(all));
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), std::mt19937_64(7));
    std::vector<CopyPlan> views;
    for (int32_t l = 0; l < launches; ++l) {
      int32_t* at = plans.as<int32_t>() + int64_t{l} * (2 * count + 1);
      views.push_back({at + 1, at + 1 + count, at, count});
      words.push_back(count);
      for (int32_t i = 0; i < count; ++i) words.push_back(l * count + i);
      for (int32_t i = 0; i < count; ++i) words.push_back(rows[static_cast<size_t>(l * count + i)]);
    }
    stream_->copy("plans", plans.data(), words.data(), words.size() * sizeof(int32_t));
    const size_t bytes = static_cast<size_t>(launches) * static_cast<size_t>(count) * row_bytes_;
    return rate("gather of " + counted(count, "row"), bytes, [&] {
      for (const CopyPlan& plan : views) {
        gather_rows(*stream_, "gather", plan, source_.as<std::byte>(), target_.as<std::byte>(), row_bytes_);
      }
    });
  }

  Row ensure(int32_t misses) {
    constexpr int32_t kLayers = 40, kExperts = 256, kSlots = 4096, kIds = 8, kCalls = 400;
    const SlotMap map(*device_, *stream_, {.layers = kLayers, .experts = kExperts, .max_slots = kSlots},
                      kSlots);
    const Buffer plan_memory = device_->allocate_array<int32_t>(2 * kExperts + 1, "bench plan");
    auto* words = plan_memory.as<int32_t>();
    const CopyPlan plan{words + 1, words + 1 + kExperts, words, kExperts};
    // Call c of a layer names 8 - misses experts of its call before and `misses` that it has not named for
    // long.
    std::vector<int32_t> ids;
    for (int32_t c = 0; c < kCalls; ++c) {
      for (int32_t i = 0; i < kIds; ++i) {
        const int32_t turn = c / kLayers;
        ids.push_back(i < misses ? 8 + (turn * misses + i) % (kExperts - 8) : i);
      }
    }
    const Buffer there = device_->allocate_array<int32_t>(static_cast<int64_t>(ids.size()), "bench ids");
    const auto call = [&](int32_t c) {
      slot_ops::ensure(*stream_, map.view(), c % kLayers, there.as<int32_t>() + c * kIds, kIds, plan);
    };
    const auto timed = [&] {
      for (int32_t c = kLayers; c < kCalls; ++c) call(c);
    };
    // As in a decode step, where they run inside a graph; one by one where the device has none.
    const std::unique_ptr<Graph> graph = stream_->capture(timed);
    return rounds(std::to_string(misses) + " misses", [&] {
      stream_->copy("ids", there.data(), ids.data(), ids.size() * sizeof(int32_t));
      slot_ops::reset(*stream_, map.view(), kSlots);
      for (int32_t c = 0; c < kLayers; ++c) call(c);  // the first ones find nothing
      device_->wait(*stream_, "bench");
      return time_us([&] { graph ? stream_->run(*graph) : timed(); }) / (kCalls - kLayers);
    });
  }

  int64_t rounds_;
  size_t row_bytes_, bytes_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> from_, to_;
  Buffer source_, target_;
};

void bench_link(const BenchLinkOptions& options) {
  if (options.row_bytes % 16 != 0) {
    throw UsageError("--row-bytes " + std::to_string(options.row_bytes) + ": expected a multiple of 16");
  }
  const std::optional<uint64_t> bytes = parse_bytes(options.bytes);
  std::unique_ptr<Device> device = options.device.open(0);
  check_memory(options, *device, *bytes);
  LinkBench bench(options, std::move(device), *bytes);
  const std::vector<Row> rates = bench.rates(), ensures = bench.ensures();
  if (options.json) {
    nlohmann::ordered_json json = {{"row_bytes", options.row_bytes}, {"rounds", options.rounds}};
    for (const Row& row : rates) {
      json["rates"].push_back({{"what", row.what},
                               {"bytes_per_s", row.median},
                               {"lowest", row.lowest},
                               {"highest", row.highest},
                               {"share_of_plain", row.median / rates[0].median}});
    }
    for (const Row& row : ensures) {
      json["ensure_us"].push_back(
          {{"what", row.what}, {"us", row.median}, {"lowest", row.lowest}, {"highest", row.highest}});
    }
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  std::printf("host memory to device, medians of %s, rows of %s\n", counted(options.rounds, "round").c_str(),
              format_bytes(static_cast<uint64_t>(options.row_bytes)).c_str());
  std::printf("%-22s %10s %8s %19s\n", "", "GB/s", "of plain", "lowest to highest");
  for (const Row& row : rates) {
    std::printf("%-22s %10.2f %6.1f %% %9.2f to %6.2f\n", row.what.c_str(), row.median / 1e9,
                100 * row.median / rates[0].median, row.lowest / 1e9, row.highest / 1e9);
  }
  std::printf("\nensure, 8 ids, 4096 slots, launch by launch\n");
  for (const Row& row : ensures) {
    std::printf("%-22s %8.2f us %16.2f to %6.2f\n", row.what.c_str(), row.median, row.lowest, row.highest);
  }
}

}  // namespace

void add_bench_link(Command& bench) {
  auto options = std::make_shared<BenchLinkOptions>();
  Command command =
      bench.subcommand("link", "Rates of copies and of the gather kernel, and the time of ensure");
  command.footer(
      "Each figure is the median of the rounds, with the lowest and the highest one. Without a GPU it "
      "measures copies inside\n"
      "host memory, which says nothing about a link.\n"
      "\n"
      "  $ sluice bench link --device cuda");
  options->device.add_to(command);
  command
      .option(
          "--bytes", options->bytes,
          "Host memory to move in a round: from 64MiB to what host memory (twice, without a GPU) and the GPU "
          "have free")
      .accepted_by([](const std::string& text) {
        const std::optional<uint64_t> bytes = parse_bytes(text);
        if (bytes && *bytes >= kLeastBytes) return;
        throw Error(
            ErrorCode::kInvalidArgument,
            "--bytes " + text + ": expected a size such as 1GB, from 64MiB to the memory that is free");
      })
      .show_default();
  command.option("--row-bytes", options->row_bytes, "Bytes of an expert's row, a multiple of 16")
      .range(16, 1 << 24)
      .show_default();
  command.option("--rounds", options->rounds, "Rounds").range(1, 1000).show_default();
  command.flag("--json", options->json, "Print JSON");
  command.action([options] { bench_link(*options); });
}

}  // namespace sluice::apps
