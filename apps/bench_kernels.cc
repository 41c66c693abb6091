// `sluice bench kernels`: what the products of a layer reach by rows of activations, beside one plain product
// of as many multiplications.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <vector>

#include "apps/arguments.h"
#include "apps/commands.h"
#include "apps/device_options.h"
#include "apps/synth_model.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/median.h"
#include "kernels/experts.h"
#include "kernels/linear.h"

namespace sluice::apps {
namespace {

constexpr int64_t kMostRows = 8192;

struct Options {
  SynthOptions synth;
  DeviceOptions device;
  int threads = 0;
  std::string compute = "bf16";
  std::vector<std::string> rows = {"1", "64", "512"};
  int64_t rounds = 5;
  bool json = false;
};

/// Bytes a second that `threads` threads read of memory together: what products of few rows are measured
/// against.
double read_rate(int threads, int64_t rounds) {
  constexpr size_t kWords = size_t{64} << 20;  // half a gigabyte
  const std::vector<uint64_t> memory(kWords, 1);
  const size_t share = kWords / static_cast<size_t>(threads);
  std::vector<double> seconds;
  for (int64_t r = -1; r < rounds; ++r) {
    std::vector<std::thread> readers;
    std::vector<uint64_t> sums(static_cast<size_t>(threads));
    const auto start = std::chrono::steady_clock::now();
    for (size_t t = 0; t < sums.size(); ++t) {
      readers.emplace_back([&, t] {
        const uint64_t* from = memory.data() + t * share;
        uint64_t apart[8] = {};  // so that additions do not wait for each other
        for (size_t i = 0; i + 8 <= share; i += 8) {
          for (size_t j = 0; j < 8; ++j) apart[j] += from[i + j];
        }
        sums[t] = std::accumulate(std::begin(apart), std::end(apart), uint64_t{0});
      });
    }
    for (std::thread& reader : readers) reader.join();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    SLUICE_CHECK(std::accumulate(sums.begin(), sums.end(), uint64_t{0}) == share / 8 * 8 * sums.size());
    if (r >= 0) seconds.push_back(took);
  }
  return static_cast<double>(kWords * sizeof(uint64_t)) / median(std::move(seconds));
}

struct Result {
  std::string product;
  int64_t rows = 0;
  double us = 0, flops = 0, weight_bytes = 0;
};

class KernelBench {
 public:
  KernelBench(const Options& options, const std::vector<int64_t>& rows)
      : shape_(options.synth.resolve()),
        compute_(options.compute == "f32" ? Compute::kF32 : Compute::kBf16),
        rounds_(options.rounds),
        device_(options.device.open(options.threads)),
        stream_(device_->make_stream("bench", Priority::kNormal)),
        from_(device_->make_event("from")),
        to_(device_->make_event("to")) {
    const int64_t pairs = *std::max_element(rows.begin(), rows.end()) * shape_.top_k;
    const int64_t widest =
        std::max({shape_.hidden, queries(), queries_keys_values(), 3 * shape_.intermediate});
    x_ = filled(static_cast<size_t>(pairs * widest) * sizeof(float));
    y_ = filled(static_cast<size_t>(pairs * widest) * sizeof(float));
    activations_ = filled(static_cast<size_t>(pairs * shape_.intermediate) * sizeof(float));
  }

  bool on_host() const { return device_->backend() == Backend::kHost; }

  std::vector<Result> run(int64_t rows) {
    const int64_t hidden = shape_.hidden;
    return {product("queries, keys, values", rows, queries_keys_values(), hidden, compute_),
            product("attention output", rows, hidden, queries(), compute_),
            product("router, in f32", rows, shape_.experts, hidden, Compute::kF32), experts(rows),
            product("experts as one matrix", rows * shape_.top_k, 3 * shape_.intermediate, hidden, compute_)};
  }

 private:
  static constexpr int64_t kMatrices = 8;  // in turn, so that they come from memory and not from a cache

  int64_t queries() const { return shape_.heads * shape_.head_dim; }
  int64_t queries_keys_values() const { return queries() + 2 * shape_.kv_heads * shape_.head_dim; }

  /// Memory full of numbers that are neither huge, subnormal (a CPU takes long for those) nor NaN in any
  /// format.
  Buffer filled(size_t bytes) {
    Buffer buffer = device_->allocate(bytes, "bench");
    std::vector<uint8_t> pattern(std::min<size_t>(bytes, 1 << 20));
    for (size_t i = 0; i < pattern.size(); ++i) {
      pattern[i] = static_cast<uint8_t>(i % 2 == 1 ? 0x3c : 96 + i * 37 % 24);
    }
    for (size_t at = 0; at < bytes; at += pattern.size()) {
      stream_->copy("fill", buffer.as<std::byte>() + at, pattern.data(),
                    std::min(pattern.size(), bytes - at));
    }
    device_->wait(*stream_, "bench");
    return buffer;
  }
  template <class T>
  Buffer copied(const std::vector<T>& values) {
    Buffer buffer = device_->allocate(values.size() * sizeof(T), "bench");
    stream_->copy("values", buffer.data(), values.data(), buffer.bytes());
    device_->wait(*stream_, "bench");
    return buffer;
  }

  template <class Work>
  double time_us(Work&& work) {
    std::vector<double> times;
    for (int64_t r = -1; r < rounds_; ++r) {  // the first one warms up
      const double start = device_->now_us();
      stream_->record(*from_);
      for (int64_t i = 0; i < kMatrices; ++i) work(static_cast<size_t>(i));
      stream_->record(*to_);
      device_->wait(*stream_, "bench");
      const auto us = device_->elapsed_us(*from_, *to_);
      if (r >= 0) times.push_back((us ? *us : device_->now_us() - start) / kMatrices);
    }
    return median(std::move(times));
  }

  Result product(const std::string& name, int64_t rows, int64_t n, int64_t k, Compute compute) {
    const size_t bytes = weight_bytes(WeightFormat::kBf16, n, k);
    const Buffer weights = filled(kMatrices * bytes);
    const double us = time_us([&](size_t i) {
      const Matrix w{{WeightFormat::kBf16, n, k, weights.as<std::byte>() + i * bytes, nullptr, 1.0f},
                     compute};
      linear(*stream_, x_.as<float>(), rows, w, nullptr, y_.as<float>());
    });
    return {name, rows, us, 2.0 * static_cast<double>(rows * n * k), static_cast<double>(bytes)};
  }

  /// Rows are dealt out evenly over the experts.
  Result experts(int64_t rows) {
    const RowLayout layout = row_layout(shape_.format, shape_.hidden, shape_.intermediate);
    const Buffer memory = filled(static_cast<size_t>(shape_.experts) * layout.row_bytes);
    const int64_t pairs = rows * shape_.top_k;
    std::vector<int32_t> ids, row_of;
    for (int64_t i = 0; i < pairs; ++i) ids.push_back(static_cast<int32_t>(i % shape_.experts));
    for (int64_t e = 0; e < shape_.experts; ++e) row_of.push_back(static_cast<int32_t>(e));
    const Buffer there = copied(ids), where = copied(row_of),
                 ones = copied(std::vector<float>(
                     static_cast<size_t>(std::max(pairs, shape_.experts * kScalarsPerExpert)), 1.0f));
    const ExpertRows view{layout,           memory.as<std::byte>(), where.as<int32_t>(),
                          ones.as<float>(), shape_.experts,         compute_};
    const ExpertRoutes routes{there.as<int32_t>(), ones.as<float>(), rows, shape_.top_k};
    const double us = time_us([&](size_t) {
      expert_products(*stream_, x_.as<float>(), routes, view, 0, static_cast<int32_t>(shape_.experts),
                      activations_.as<float>(), y_.as<float>());
    });
    return {"experts, " + std::string(name_of(shape_.format)), rows, us,
            6.0 * static_cast<double>(pairs * shape_.hidden * shape_.intermediate),
            static_cast<double>(std::min(pairs, shape_.experts)) * static_cast<double>(layout.row_bytes)};
  }

  const SynthShape shape_;
  const Compute compute_;
  const int64_t rounds_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> from_, to_;
  Buffer x_, y_, activations_;
};

void bench_kernels(const Options& options) {
  const std::vector<int64_t> rows = parse_numbers("--rows", options.rows, 1, kMostRows);
  KernelBench bench(options, rows);
  nlohmann::json out = {{"products", nlohmann::json::array()}};
  if (bench.on_host()) {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const double rate = read_rate(options.threads > 0 ? options.threads : all, options.rounds) / 1e9;
    out["read_gbps"] = rate;
    if (!options.json) {
      std::printf("memory is read at %.1f GB/s; products run with %s\n", rate,
                  std::string(name_of(simd_level())).c_str());
    }
  }
  if (!options.json) std::printf("product                     rows         us    TFLOP/s   weights GB/s\n");
  for (const int64_t n : rows) {
    for (const Result& r : bench.run(n)) {
      const double tflops = r.flops / r.us / 1e6, gbps = r.weight_bytes / r.us / 1e3;
      out["products"].push_back({{"product", r.product},
                                 {"rows", r.rows},
                                 {"us", r.us},
                                 {"tflops", tflops},
                                 {"weights_gbps", gbps}});
      if (options.json) continue;
      std::printf("%-24s %7lld %10.1f %10.3f %14.2f\n", r.product.c_str(), static_cast<long long>(r.rows),
                  r.us, tflops, gbps);
    }
  }
  if (options.json) std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

void add_bench_kernels(Command& bench) {
  auto options = std::make_shared<Options>();
  Command command = bench.subcommand("kernels", "Time the products of a layer by rows of activations");
  command.footer(
      "Multiplications and weight bytes count once. Rows go to all experts evenly; \"as one matrix\" is a "
      "BF16\n"
      "matrix of as many multiplications. On the CPU the rate at which memory is read comes first.\n"
      "\n"
      "  $ sluice bench kernels --synth tiny --rows 1,64");
  options->synth.add_to(command, "--synth");
  command.remove({"--layers", "--seed"});
  options->device.add_to(command);
  command.option("--threads", options->threads, "Threads of the CPU backend; 0 means all cores")
      .range(0, 4096)
      .show_default();
  command.option("--compute", options->compute, "What products read").one_of({"bf16", "f32"}).show_default();
  command.option("--rows", options->rows, "Rows of activations").separated_by(',').show_default();
  command.option("--rounds", options->rounds, "Rounds of eight calls; the median counts")
      .range(1, 1000)
      .show_default();
  command.flag("--json", options->json, "Print JSON");
  command.action([options] { bench_kernels(*options); });
}

}  // namespace sluice::apps
