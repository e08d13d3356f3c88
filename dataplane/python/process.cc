// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "dataplane/memory/element_limit.h"
#include "dataplane/python/child_source.h"
#include "dataplane/python/environment.h"
#include "dataplane/python/leaves.h"
#include "include/status_macros.h"

namespace penstock::python_host {
namespace {

// The numbers of requests, replies and flags, as in child.py.
constexpr uint64_t kArguments = 1, kResults = 2, kDefine = 3, kCall = 4, kOpen = 5, kNext = 6,
                   kClose = 7;
constexpr uint64_t kLeaves = 0, kEnd = 100, kNeedRoom = 101, kReady = 102;
constexpr uint64_t kKept = 1;

constexpr size_t kFirstRoom = 64 << 10;  // bytes; enough for an error's text
constexpr size_t kMostFunctions = 256;   // that one process keeps
constexpr int kSocketOfChild = 3;
constexpr int kSourceOfChild = 4;
// The time that a process has to answer after a stop. Then it is killed, because a new process
// costs less than a longer wait.
constexpr absl::Duration kKillAfter = absl::Seconds(2);
constexpr int kReadyWithinMs = 120'000;  // enough to load NumPy from a cold disk

// The argument of `-c`. The program itself is in an unnamed file.
constexpr char kBegin[] =
    "import os; exec(compile(os.fdopen(4).read(), 'penstock child', 'exec'), "
    "{'__name__': 'penstock child', '__file__': 'penstock child'})";

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(errno)));
}

absl::StatusOr<Descriptor> FileOf(std::string_view text) {
  Descriptor file(memfd_create("penstock-child", MFD_CLOEXEC));
  if (!file) return Failed("memfd_create");
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0) return Failed("writing a memfd");
    text.remove_prefix(written);
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return Failed("lseek");
  return file;
}

// Returns another descriptor of the file, with a number that the child does not use.
absl::StatusOr<Descriptor> OutOfTheWay(int fd) {
  Descriptor high(fcntl(fd, F_DUPFD_CLOEXEC, 10));
  if (!high) return Failed("fcntl");
  return high;
}

// The descriptors and signal mask that a process starts with.
class SpawnOptions {
 public:
  // REQUIRES: both descriptors are results of OutOfTheWay().
  SpawnOptions(int socket, int source) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, 2, 1);  // the child's output goes to stderr
    posix_spawn_file_actions_adddup2(&actions_, socket, kSocketOfChild);
    posix_spawn_file_actions_adddup2(&actions_, source, kSourceOfChild);
    posix_spawnattr_init(&attributes_);
    // Blocks SIGINT until the process itself sets SIGINT to be ignored.
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnOptions(const SpawnOptions&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Returns the strings as C programs get them: pointers, then null.
std::vector<char*> PointersTo(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Adds spare space, so that not every larger element needs a new segment.
size_t WithSpare(size_t bytes) {
  return bytes + bytes / 4;
}

// Returns a timeout for poll(), to which -1 means no timeout.
int MillisecondsUntil(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::max(deadline - BootTime(), absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

void AppendText(std::string& to, const std::string& text) {
  const uint64_t size = text.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to.append(text);
  to.resize((to.size() + sizeof size - 1) / sizeof size * sizeof size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const Command& command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Failed("socketpair");
  Descriptor ours(ends[0]);
  const Descriptor end(ends[1]);
  Descriptor stop_event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!stop_event) return Failed("eventfd");
  ASSIGN_OR_RETURN(const Descriptor theirs, OutOfTheWay(end.get()));
  ASSIGN_OR_RETURN(const Descriptor file, FileOf(kChildSource));
  ASSIGN_OR_RETURN(const Descriptor source, OutOfTheWay(file.get()));
  std::vector<std::string> words = {command.interpreter, "-c", kBegin};
  words.insert(words.end(), command.path.begin(), command.path.end());
  std::vector<std::string> variables = SelectEnvironment(environ, command.variables);
  const std::vector<char*> argv = PointersTo(words);
  const std::vector<char*> environment = PointersTo(variables);
  const SpawnOptions options(theirs.get(), source.get());
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, command.interpreter.c_str(), options.actions(),
                                 options.attributes(), argv.data(), environment.data());
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat(
        "the Python interpreter '", command.interpreter, "' cannot be started: ", strerror(error),
        "; name a different one (penstock worker --python-command PATH)"));
  }
  return std::unique_ptr<Process>(new Process(pid, std::move(ours), std::move(stop_event)));
}

Process::Process(pid_t pid, Descriptor socket, Descriptor stop_event)
    : pid_(pid), socket_(std::move(socket)), stop_event_(std::move(stop_event)) {}

Process::~Process() {
  Reap();
}

std::optional<int> Process::Reap() {
  if (std::exchange(reaped_, true)) return std::nullopt;
  int status = 0;
  pid_t found = waitpid(pid_, &status, WNOHANG);
  if (found == 0) {
    // Kills the process, which may have closed its end of the socket and still be running.
    kill(pid_, SIGKILL);
    while ((found = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
    }
  }
  return found == pid_ ? std::optional(status) : std::nullopt;
}

absl::Status Process::AwaitReady() {
  absl::Status sent = Renew(arguments_, kArguments, kFirstRoom);
  sent.Update(Renew(results_, kResults, kFirstRoom));
  if (!sent.ok() && !ended_) return sent;
  pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  int found;
  while ((found = poll(&ready, 1, kReadyWithinMs)) < 0 && errno == EINTR) {
  }
  if (found == 0)
    return absl::DeadlineExceededError("a Python process was not ready within two minutes");
  const absl::StatusOr<Reply> reply = Receive();
  if (reply.ok() && reply->status == kReady) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a Python process ended before it was ready; its output is on stderr (it needs NumPy)");
}

absl::Status Process::Call(const PythonFunction& function, absl::Span<const Tensor> inputs,
                           absl::Span<const TensorSpec> outputs, ElementOutputs& out) {
  RETURN_IF_ERROR(Define(function));
  const size_t bytes = BytesOfLeaves(inputs);
  RETURN_IF_ERROR(MakeRoom(bytes));
  WriteLeaves(inputs, arguments_.memory());
  return Take(Ask(kCall, function.key), function, outputs, out);
}

absl::Status Process::Open(uint64_t session, const PythonFunction& generator) {
  RETURN_IF_ERROR(Define(generator));
  ASSIGN_OR_RETURN(const Reply reply, Ask(kOpen, session, generator.key));
  return reply.status == kLeaves ? absl::OkStatus() : ErrorOf(reply, generator);
}

absl::StatusOr<bool> Process::Next(uint64_t session, uint64_t passed_over,
                                   const PythonFunction& generator,
                                   absl::Span<const TensorSpec> outputs, ElementOutputs& out) {
  const absl::StatusOr<Reply> reply = Ask(kNext, session, passed_over);
  if (reply.ok() && reply->status == kEnd) return false;
  RETURN_IF_ERROR(Take(reply, generator, outputs, out));
  return true;
}

void Process::Close(uint64_t session) {
  Ask(kClose, session).IgnoreError();
}

void Process::Interrupt() {
  shutdown(socket_.get(), SHUT_RDWR);
}

std::string Process::HowItEnded() {
  const std::optional<int> status = Reap();
  if (!status.has_value()) return "ended";
  if (!WIFSIGNALED(*status)) return absl::StrCat("exited with code ", WEXITSTATUS(*status));
  return absl::StrCat("was killed by signal ", WTERMSIG(*status), " (",
                      strsignal(WTERMSIG(*status)), ")");
}

absl::Status Process::Define(const PythonFunction& function) {
  if (defined_.contains(function.key)) return absl::OkStatus();
  std::string texts;
  for (const std::string* text : {&function.name, &function.pickle, &function.call})
    AppendText(texts, *text);
  RETURN_IF_ERROR(MakeRoom(texts.size()));
  std::memcpy(arguments_.memory().data(), texts.data(), texts.size());
  const bool forgets = defined_.size() >= kMostFunctions;
  if (forgets) defined_.clear();
  ASSIGN_OR_RETURN(const Reply reply, Ask(kDefine, function.key, forgets ? 1 : 0));
  if (reply.status != kLeaves) return ErrorOf(reply, function);
  defined_.insert(function.key);
  return absl::OkStatus();
}

absl::Status Process::MakeRoom(size_t bytes) {
  const size_t room = arguments_.memory().size();
  if (!kept_ && bytes <= room) return absl::OkStatus();
  // Arrays that are kept by functions pin the old segment. So that little memory is pinned, the new
  // segment fits these arguments and not the largest arguments so far.
  RETURN_IF_ERROR(Renew(arguments_, kArguments, std::max(kFirstRoom, WithSpare(bytes))));
  kept_ = false;
  return absl::OkStatus();
}

absl::Status Process::Renew(SharedSegment& segment, uint64_t op, size_t bytes) {
  ASSIGN_OR_RETURN(SharedSegment made, SharedSegment::Create(bytes));
  RETURN_IF_ERROR(Send(op, made.memory().size(), 0, made.fd()));
  segment = std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<Process::Reply> Process::Ask(uint64_t op, uint64_t a, uint64_t b) {
  RETURN_IF_ERROR(Send(op, a, b));
  ASSIGN_OR_RETURN(Reply reply, Receive());
  if (reply.status == kNeedRoom) {
    kept_ = true;  // assumed, since this reply does not report it
    if (std::cmp_greater(reply.bytes, MostElementBytes()))
      return AboveElementLimit(absl::StrCat("a result of ", reply.bytes, " bytes"));
    RETURN_IF_ERROR(Renew(results_, kResults, WithSpare(reply.bytes)));
    ASSIGN_OR_RETURN(reply, Receive());
  }
  if (reply.bytes > results_.memory().size())
    return absl::InternalError(
        "a Python process announced a longer reply than its shared memory holds");
  kept_ = (reply.flags & kKept) != 0;
  return reply;
}

absl::Status Process::Send(uint64_t op, uint64_t a, uint64_t b, int descriptor) {
  uint64_t words[4] = {op, a, b, 0};
  iovec part{.iov_base = words, .iov_len = sizeof words};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  while ((sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == sizeof words ? absl::OkStatus() : Ended();
}

absl::StatusOr<Process::Reply> Process::Receive() {
  if (!AwaitReply()) return Ended();
  Reply reply;
  ssize_t got;
  while ((got = recv(socket_.get(), &reply, sizeof reply, 0)) < 0 && errno == EINTR) {
  }
  if (got != sizeof reply) return Ended();
  return reply;
}

bool Process::AwaitReply() {
  const std::stop_callback wake(stop_, [this] { eventfd_write(stop_event_.get(), 1); });
  absl::Time deadline = absl::InfiniteFuture();
  pollfd ready[2] = {{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                     {.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  while (ready[0].revents == 0) {
    const int found = poll(ready, 2, MillisecondsUntil(deadline));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return false;
    // The event may be left over from an earlier call that was answered although a stop was
    // requested.
    eventfd_t count;
    if (eventfd_read(stop_event_.get(), &count) == 0 && stop_.stop_requested())
      deadline = BootTime() + kKillAfter;
  }
  return true;
}

bool Process::HasGone() const {
  char first;
  return recv(socket_.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

absl::Status Process::Ended() {
  ended_ = true;
  return absl::AbortedError("a Python process has ended");
}

absl::Status Process::Take(const absl::StatusOr<Reply>& reply, const PythonFunction& function,
                           absl::Span<const TensorSpec> outputs, ElementOutputs& out) const {
  if (reply.ok() && reply->status != kLeaves) return ErrorOf(*reply, function);
  return Annotate(
      reply.ok() ? ReadLeaves(results_.memory().first(reply->bytes), outputs, out) : reply.status(),
      "in function '", function.name, "'");
}

absl::Status Process::ErrorOf(const Reply& reply, const PythonFunction& function) const {
  const std::string_view text(reinterpret_cast<const char*>(results_.memory().data()), reply.bytes);
  const bool known = reply.status > 0 && reply.status <= 16;
  return absl::Status(
      known ? static_cast<absl::StatusCode>(reply.status) : absl::StatusCode::kInternal,
      absl::StrCat("function '", function.name, "' ", std::string(text)));
}

}  // namespace penstock::python_host
