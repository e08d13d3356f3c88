// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/machine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "control/env/descriptor.h"
#include "dataplane/memory/device/device.h"
#include "dataplane/memory/huge_pages.h"

namespace penstock::doctor {
namespace {

namespace fs = std::filesystem;

absl::Status SystemError(const char* call) {
  return absl::ErrnoToStatus(errno, absl::StrCat(call, " fails"));
}

Limit LimitOf(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0) return {};
  auto bytes = [](rlim_t value) { return value == RLIM_INFINITY ? kUnlimited : value; };
  return {bytes(limit.rlim_cur), bytes(limit.rlim_max)};
}

absl::Duration Now(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return absl::DurationFromTimespec(now);
}

// Returns how far the wall clock is ahead of the boot clock, which never jumps.
absl::Duration WallAhead() {
  return Now(CLOCK_REALTIME) - Now(CLOCK_BOOTTIME);
}

// Libraries stay open, because some start threads or install hooks that outlive a dlclose.
absl::StatusOr<void*> OpenLibrary(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return absl::NotFoundError(dlerror());
  return handle;
}

std::string PathOf(void* handle) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : "";
}

class Machine final : public Probe {
 public:
  explicit Machine(std::string root) : root_(std::move(root)), wall_ahead_(WallAhead()) {}

  std::optional<std::string> Read(const std::string& path) const override {
    // Not a stream: a stream throws when reading a file of /sys returns an error.
    const Descriptor file(open(Under(path).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return std::nullopt;
    std::string text;
    char part[4096];
    ssize_t bytes = 0;
    while ((bytes = read(file.get(), part, sizeof(part))) > 0) {
      text.append(part, static_cast<size_t>(bytes));
    }
    if (bytes < 0) return std::nullopt;
    return std::string(absl::StripAsciiWhitespace(text));
  }

  std::vector<std::string> List(const std::string& folder) const override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(Under(folder), error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::optional<std::string> Resolve(const std::string& path) const override {
    std::error_code error;
    const fs::path real = fs::canonical(Under(path), error);
    if (error) return std::nullopt;
    const fs::path root = fs::canonical(root_, error);
    if (error) return std::nullopt;
    return (fs::path("/") / real.lexically_relative(root)).string();
  }

  std::optional<int64_t> FileSystemBytes(const std::string& folder) const override {
    struct statvfs space = {};
    if (statvfs(Under(folder).c_str(), &space) != 0) return std::nullopt;
    return static_cast<int64_t>(space.f_blocks) * static_cast<int64_t>(space.f_frsize);
  }

  Limit LockedMemoryBytes() const override { return LimitOf(RLIMIT_MEMLOCK); }
  Limit OpenFiles() const override { return LimitOf(RLIMIT_NOFILE); }

  Clocks ReadClocks() const override {
    timex state = {};
    const int answer = adjtimex(&state);  // only reads, because no mode is set
    return {.synchronized = answer >= 0 && answer != TIME_ERROR,
            .wall_step = WallAhead() - wall_ahead_};
  }

  absl::Status TryMemfd() const override {
    const Descriptor file(memfd_create("penstock-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.get() < 0) return SystemError("memfd_create");
    if (ftruncate(file.get(), 4096) != 0) return SystemError("ftruncate of a memfd");
    constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return SystemError("sealing a memfd");
    return absl::OkStatus();
  }

  absl::Status TryPidfd() const override {
    // Called by number, because the glibc of systems before Debian 12 lacks the function.
    const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    return process.get() < 0 ? SystemError("pidfd_open") : absl::OkStatus();
  }

  absl::Status TryHugePage() const override {
    const Descriptor file(memfd_create("penstock-doctor", MFD_CLOEXEC));
    if (!file || ftruncate(file.get(), kHugePageBytes) != 0) return SystemError("memfd_create");
    void* memory = MapAligned(kHugePageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get());
    if (memory == MAP_FAILED) return SystemError("mmap");
    const int error = MakeHuge(absl::MakeSpan(static_cast<std::byte*>(memory), kHugePageBytes));
    munmap(memory, kHugePageBytes);
    return absl::ErrnoToStatus(error, "madvise(MADV_COLLAPSE) fails");
  }

  absl::StatusOr<std::string> FindLibrary(const std::string& name) const override {
    const absl::StatusOr<void*> handle = OpenLibrary(name);
    if (!handle.ok()) return handle.status();
    return PathOf(*handle);
  }

  std::string DeviceBackendName() const override {
    return std::string(LinkedDeviceBackend().name());
  }
  absl::StatusOr<int> CountDevices() const override { return LinkedDeviceBackend().Count(); }

  absl::StatusOr<UcxLibrary> Ucx() const override {
    const absl::StatusOr<void*> handle = OpenLibrary("libucp.so.0");
    if (!handle.ok()) return handle.status();
    using GetVersion = void(unsigned* major, unsigned* minor, unsigned* release);
    auto* get_version = reinterpret_cast<GetVersion*>(dlsym(*handle, "ucp_get_version"));
    if (get_version == nullptr) return absl::NotFoundError("libucp.so.0 reports no version");
    unsigned major = 0, minor = 0, release = 0;
    get_version(&major, &minor, &release);
    return UcxLibrary{.path = PathOf(*handle),
                      .major = static_cast<int>(major),
                      .minor = static_cast<int>(minor),
                      .release = static_cast<int>(release)};
  }

  absl::StatusOr<std::vector<transfer::verbs::Device>> RdmaDevices() const override {
    return transfer::verbs::ListDevices();
  }

 private:
  std::string Under(const std::string& path) const {
    return root_ == "/" ? path : absl::StrCat(root_, path);
  }

  const std::string root_;
  const absl::Duration wall_ahead_;  // at the probe's construction
};

}  // namespace

std::unique_ptr<Probe> MakeMachineProbe(std::string root) {
  return std::make_unique<Machine>(std::move(root));
}

}  // namespace penstock::doctor
