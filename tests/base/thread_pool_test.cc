// Splitting index ranges over threads.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using Pieces = std::vector<std::pair<int64_t, int64_t>>;

Pieces pieces_of(ThreadPool& pool, int64_t n, int64_t grain) {
  Pieces pieces;
  std::mutex mutex;
  pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    pieces.emplace_back(begin, end);
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(ThreadPool, CoversEachIndexOnceForAnySizeGrainAndNumberOfThreads) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t n : {1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        int64_t position = 0;
        for (const auto& [begin, end] : pieces_of(pool, n, grain)) {
          EXPECT_EQ(begin, position);
          EXPECT_GT(end, begin);
          if (end < n) {
            EXPECT_GE(end - begin, grain);
          }
          position = end;
        }
        EXPECT_EQ(position, n) << threads << " threads, grain " << grain;
      }
    }
  }
}

TEST(ThreadPool, SplitsTheSameRangeTheSameWayEachTime) {
  ThreadPool pool(4);
  const Pieces first = pieces_of(pool, 1001, 10);
  EXPECT_GT(first.size(), 4u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(pieces_of(pool, 1001, 10), first);
}

TEST(ThreadPool, DoesNothingForAnEmptyRange) {
  ThreadPool pool(2);
  EXPECT_TRUE(pieces_of(pool, 0, 1).empty());
  EXPECT_TRUE(pieces_of(pool, -5, 1).empty());
}

TEST(ThreadPool, ReturnsOnlyWhenAllWorkIsDone) {
  ThreadPool pool(4);
  for (int round = 0; round < 3000; ++round) {
    std::atomic<int64_t> sum = 0;
    pool.parallel_for(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum.fetch_add(i, std::memory_order_relaxed);
    });
    ASSERT_EQ(sum.load(), 64 * 63 / 2) << "round " << round;
  }
}

TEST(ThreadPool, RethrowsAnExceptionOfABodyAndWorksAfterwards) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      const auto body = [](int64_t begin, int64_t end) {
        if (begin <= 50 && 50 < end) throw std::runtime_error("index 50");
      };
      EXPECT_THROW(pool.parallel_for(100, 1, body), std::runtime_error);
      std::atomic<int> calls = 0;
      pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) { calls += static_cast<int>(end - begin); });
      EXPECT_EQ(calls.load(), 100);
    }
  }
}

TEST(ThreadPool, TakesAllUsableCoresByDefault) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(ThreadPool().threads(), usable_cores());
}

}  // namespace
}  // namespace sluice
