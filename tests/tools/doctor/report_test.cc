// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_split.h"
#include "tests/tools/doctor/fake_probe.h"
#include "tools/doctor/machine.h"

namespace penstock::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

FakeProbe WithoutNic() {
  FakeProbe probe = FakeProbe::Healthy();
  probe.RemoveNic();
  return probe;
}

TEST(Examination, OfAHealthyMachineFindsNothingAmiss) {
  const std::vector<Finding> findings = Examine(FakeProbe::Healthy());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.severity, Severity::kOk) << finding.id << ": " << finding.what;
  }
  EXPECT_EQ(ExitCode(findings), 0);
}

TEST(Examination, PutsTheWorstFirst) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.clocks.synchronized = false;                         // a note
  probe.files["/proc/sys/net/core/somaxconn"] = "128";       // a warning
  probe.memfd = absl::PermissionDeniedError("memfd fails");  // an error
  const std::vector<Finding> findings = Examine(probe);
  ASSERT_GT(findings.size(), 3u);
  EXPECT_EQ(findings[0].id, "memory.memfd");
  EXPECT_EQ(findings[1].id, "net.somaxconn");
  EXPECT_EQ(findings[2].id, "clock.unsynchronized");
}

TEST(ExitCode, IsTheWorstSeverity) {
  EXPECT_EQ(ExitCode({{.id = "a", .severity = Severity::kNote}}), 0);
  EXPECT_EQ(ExitCode({{.id = "a", .severity = Severity::kWarning}}), 1);
  EXPECT_EQ(ExitCode({{.id = "a", .severity = Severity::kWarning},
                      {.id = "b", .severity = Severity::kError}}),
            2);
}

TEST(ForProtocol, ABlockerOfTheNamedOneIsAnError) {
  const std::vector<Finding> all = Examine(WithoutNic());
  EXPECT_EQ(ExitCode(all), 0);
  EXPECT_EQ(ExitCode(ForProtocol(all, "ucx")), 2);
  EXPECT_EQ(ExitCode(ForProtocol(all, "tcp")), 0);
}

TEST(ForProtocol, OmitsUnrelatedFindings) {
  const std::vector<Finding> of_tcp = ForProtocol(Examine(FakeProbe::Healthy()), "tcp");
  EXPECT_FALSE(Fired(of_tcp, "rdma.device"));
  EXPECT_TRUE(Fired(of_tcp, "net.buffers"));
  EXPECT_TRUE(Fired(of_tcp, "cpu.cores"));  // concerns all protocols
}

TEST(Text, NamesProblemReasonAndRemedy) {
  const std::string text = ReportText({{.id = "net.x",
                                        .severity = Severity::kWarning,
                                        .what = "It is so.",
                                        .why = "It matters.",
                                        .remedy = "Mend it."},
                                       {.id = "net.y", .what = "All is well."}});
  EXPECT_EQ(text,
            "warning: net.x\n"
            "  It is so.\n"
            "  why: It matters.\n"
            "  do:  Mend it.\n"
            "\n"
            "well:\n"
            "  All is well.\n"
            "\n"
            "0 errors, 1 warning, 0 notes\n");
}

TEST(Text, NamesProtocolsThatDoNotWork) {
  EXPECT_THAT(ReportText(ForProtocol(Examine(WithoutNic()), "ucx")),
              HasSubstr("Until then ucx does not work here.\n"));
}

TEST(Text, KeepsLinesShort) {
  FakeProbe probe = FakeProbe::Healthy();
  probe.devices = absl::UnavailableError("no list");
  probe.files["/proc/sys/net/ipv4/tcp_congestion_control"] = "bbr";
  const std::string text = ReportText(Examine(probe));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_THAT(std::string(line), SizeIs(Le(100u)));
  }
}

TEST(Json, IsOneObjectWithAllThatIsKnown) {
  const std::string json = ReportJson({{.id = "net.x",
                                        .severity = Severity::kError,
                                        .what = "It is so.",
                                        .why = "It matters.",
                                        .remedy = "Mend it.",
                                        .protocols = {"tcp", "grpc"},
                                        .blocks = true}},
                                      *FakeProbe::Healthy().devices);
  EXPECT_EQ(json,
            "{\"exit_code\":2,\"findings\":[{\"id\":\"net.x\",\"severity\":\"error\","
            "\"what\":\"It is so.\",\"why\":\"It matters.\",\"remedy\":\"Mend it.\","
            "\"protocols\":[\"tcp\",\"grpc\"],\"blocks\":true}],\"rdma_devices\":[{\"name\":"
            "\"mlx5_0\",\"error\":null,\"firmware\":\"28.39.1002\",\"ports\":[{\"port\":1,"
            "\"state\":\"active\",\"link_layer\":\"ethernet\",\"active_mtu\":4096,\"max_mtu\":4096,"
            "\"gigabits_per_s\":400,\"gids\":[{\"index\":3,\"address\":\"::ffff:10.0.0.1\","
            "\"type\":\"roce_v2\"}]}]}]}\n");
}

TEST(Json, EscapesInvalidCharacters) {
  EXPECT_THAT(ReportJson({{.id = "a\"b\\c\n\xff"}}, {}),
              HasSubstr("\"id\":\"a\\\"b\\\\c\\u000a\\u00ff\""));
}

// The true probe, over a folder in place of the machine's root.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/sys/class/net");
    std::filesystem::create_directories(root_ + "/sys/devices/pci0000:00/0000:00:01.0");
    std::ofstream(root_ + "/sys/class/net/number") << " 42\n";
    std::filesystem::create_symlink("../../devices/pci0000:00/0000:00:01.0",
                                    root_ + "/sys/class/net/device");
  }
  ~MachineTest() override { std::filesystem::remove_all(root_); }

  const std::string root_ = testing::TempDir() + "penstock_doctor_root";
  const std::unique_ptr<Probe> probe_ = MakeMachineProbe(root_);
};

TEST_F(MachineTest, ReadsFilesBelowItsRoot) {
  EXPECT_EQ(probe_->Read("/sys/class/net/number"), "42");
  EXPECT_EQ(probe_->Read("/sys/class/net/nothing"), std::nullopt);
  EXPECT_EQ(probe_->Read("/sys/class/net"), std::nullopt);
}

TEST_F(MachineTest, ListsFoldersInOrder) {
  EXPECT_THAT(probe_->List("/sys/class/net"), ElementsAre("device", "number"));
  EXPECT_THAT(probe_->List("/sys/class/nothing"), ElementsAre());
}

TEST_F(MachineTest, ResolvesLinksBelowItsRoot) {
  EXPECT_EQ(probe_->Resolve("/sys/class/net/device"), "/sys/devices/pci0000:00/0000:00:01.0");
  EXPECT_EQ(probe_->Resolve("/sys/class/net/nothing"), std::nullopt);
}

TEST(Machine, FindsALibraryWhereItLies) {
  const std::unique_ptr<Probe> machine = MakeMachineProbe();
  const absl::StatusOr<std::string> found = machine->FindLibrary("libc.so.6");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, EndsWith("/libc.so.6"));
  EXPECT_EQ(machine->FindLibrary("libpenstock_nothing.so.9").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Machine, HasWhatShmNeeds) {  // as on every machine that runs these tests
  const std::unique_ptr<Probe> machine = MakeMachineProbe();
  EXPECT_TRUE(machine->TryMemfd().ok()) << machine->TryMemfd();
  EXPECT_TRUE(machine->TryPidfd().ok()) << machine->TryPidfd();
}

}  // namespace
}  // namespace penstock::doctor
