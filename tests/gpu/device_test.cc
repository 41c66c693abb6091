// The CUDA device keeps the contract of device/device.h.
#include "device/cuda/cuda_device.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "device/mapped_memory.h"
#include "gpu/gpu.h"

namespace sluice::testing {
namespace {

std::vector<uint8_t> pattern(size_t bytes, uint8_t first) {
  std::vector<uint8_t> values(bytes);
  for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(first + i * 37 + i / 251);
  return values;
}

TEST(CudaDevice, SaysWhatItIs) {
  const CudaDeviceInfo info = cuda_device_info(0);
  std::cout << info.name << ", compute capability " << info.major << "." << info.minor << ", "
            << info.multiprocessors << " multiprocessors, " << info.link << ", node " << info.numa_node
            << "\n";
  EXPECT_GE(info.major, 8);
  EXPECT_GT(info.total_bytes, info.free_bytes / 2);
  EXPECT_GE(cuda_device_count(), 1);
  EXPECT_THROW(cuda_device_info(1000), Error);
}

TEST(CudaDevice, BringsBytesThereAndBackInBatches) {
  const auto stream = gpu().make_stream("test", Priority::kHigh);
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{64} << 10, size_t{3} << 20}) {
    Buffer host = gpu().allocate(4 * bytes, "test", MemoryKind::kPinned),
           back = gpu().allocate(4 * bytes, "test", MemoryKind::kPinned);
    const Buffer there = gpu().allocate(4 * bytes, "test");
    const std::vector<uint8_t> want = pattern(4 * bytes, 7);
    std::memcpy(host.data(), want.data(), want.size());
    std::vector<CopyEntry> entries;
    for (const size_t i : {size_t{2}, size_t{0}, size_t{3}, size_t{1}}) {
      entries.push_back({there.as<std::byte>() + i * bytes, host.as<std::byte>() + i * bytes, bytes});
    }
    stream->copy_batch("there", entries);
    stream->copy("back", back.data(), there.data(), 4 * bytes);
    gpu().wait(*stream, "test");
    EXPECT_EQ(std::memcmp(back.data(), want.data(), want.size()), 0) << bytes;
  }
}

// The published probe raced with its own fill where the stream had a backlog.
TEST(CudaDevice, TestsItsBatchedCopyFiftyTimesBesideABusyStream) {
  const auto busy = gpu().make_stream("busy", Priority::kNormal);
  const Buffer a = gpu().allocate(256 << 20, "test"), b = gpu().allocate(256 << 20, "test");
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 4; ++j) busy->copy("busy", a.data(), b.data(), a.bytes());
    std::string fallback;
    make_cuda_device({}, &fallback);
    ASSERT_EQ(fallback, "");
  }
}

TEST(CudaDevice, AWaitBindsToTheLatestRecordAndAnUnrecordedEventIsNoWait) {
  const auto first = gpu().make_stream("first", Priority::kNormal),
             second = gpu().make_stream("second", Priority::kNormal);
  const auto event = gpu().make_event("event");
  EXPECT_TRUE(gpu().done(*event));
  second->wait(*event);
  gpu().wait(*second, "test");
  std::atomic<bool> go{false}, ran{false};
  first->launch_on_host({.name = "block"}, [&](const HostContext&) {
    while (!go) std::this_thread::yield();
  });
  first->record(*event);
  second->wait(*event);
  second->launch_on_host({.name = "after"}, [&](const HostContext&) { ran = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(gpu().done(*event));
  EXPECT_FALSE(ran);
  go = true;
  gpu().wait(*second, "test");
  EXPECT_TRUE(ran);
  EXPECT_TRUE(gpu().done(*event));
}

TEST(CudaDevice, HostWorkThatThrowsIsReportedByTheNextWait) {
  const auto stream = gpu().make_stream("test", Priority::kNormal);
  stream->launch_on_host({.name = "throws"},
                         [](const HostContext&) { throw Error(ErrorCode::kIo, "broken"); });
  EXPECT_THROW(gpu().wait(*stream, "test"), Error);
  gpu().wait(*stream, "test");
}

TEST(CudaDevice, ReservedMemoryKeepsItsAddressAndItsFirstBytesWhileItsSizeChanges) {
  const auto stream = gpu().make_stream("test", Priority::kNormal);
  const size_t mb = size_t{1} << 20;
  const auto memory = gpu().reserve(512 * mb, "slots");
  gpu().resize(*memory, 40 * mb);
  const std::vector<uint8_t> want = pattern(40 * mb, 3);
  stream->copy("fill", memory->data(), want.data(), want.size());
  gpu().wait(*stream, "test");
  void* const address = memory->data();
  gpu().resize(*memory, 300 * mb);
  gpu().resize(*memory, 20 * mb);
  gpu().resize(*memory, 100 * mb);
  EXPECT_EQ(memory->data(), address);
  std::vector<uint8_t> got(20 * mb);
  stream->copy("read", got.data(), memory->data(), got.size());
  stream->copy("write", static_cast<std::byte*>(memory->data()) + 99 * mb, want.data(), mb);
  gpu().wait(*stream, "test");
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size()), 0);
}

TEST(CudaDevice, ACapRefusesWhatIsAboveItAndNamesThePurpose) {
  const size_t mb = size_t{1} << 20;
  const auto device = make_cuda_device({.most_bytes = 64 * mb});
  Buffer first = device->allocate(40 * mb, "weights");
  try {
    device->allocate(40 * mb, "KV cache");
    FAIL() << "more than the cap was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("KV cache"), std::string::npos) << error.what();
  }
  first = Buffer();
  EXPECT_EQ(device->allocate(60 * mb, "KV cache").bytes(), 60 * mb);
}

TEST(CudaDevice, LocksMemoryOfTheHostAndReadsItByItsOwnAddress) {
  const size_t bytes = size_t{8} << 20;
  const Buffer rows = map_memory(bytes, "rows");
  const std::vector<uint8_t> want = pattern(bytes, 11);
  std::memcpy(rows.data(), want.data(), bytes);
  const LockResult lock = gpu().lock_pages({rows.data(), bytes}, "rows");
  ASSERT_TRUE(lock) << lock.refusal;
  const auto stream = gpu().make_stream("test", Priority::kNormal);
  const Buffer there = gpu().allocate(bytes, "test");
  std::vector<uint8_t> got(bytes);
  stream->copy("there", there.data(), rows.data(), bytes);
  stream->copy("back", got.data(), there.data(), bytes);
  gpu().wait(*stream, "test");
  EXPECT_EQ(std::memcmp(got.data(), want.data(), bytes), 0);
  gpu().unlock_pages({rows.data(), bytes});
}

TEST(CudaDevice, MeasuresTheTimeBetweenEvents) {
  const auto stream = gpu().make_stream("test", Priority::kNormal);
  const auto from = gpu().make_event("from"), to = gpu().make_event("to");
  stream->record(*from);
  stream->launch_on_host({.name = "sleep"}, [](const HostContext&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  stream->record(*to);
  gpu().wait(*stream, "test");
  EXPECT_GE(gpu().elapsed_us(*from, *to).value(), 5000);
}

}  // namespace
}  // namespace sluice::testing
