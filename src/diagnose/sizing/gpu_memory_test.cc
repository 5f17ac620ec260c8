#include "diagnose/sizing/gpu_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/sizing_fixture.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t MiB(uint64_t count) { return count << 20; }

std::vector<GpuReading> Read(std::string_view text) {
  auto readings = ReadGpuMemory(text);
  EXPECT_TRUE(readings.has_value()) << readings.error().what;
  return readings ? *std::move(readings) : std::vector<GpuReading>();
}

TEST(NvidiaSmi, SaysTheSameInAllItsForms) {
  const auto table = Read(SizingData("nvidia_smi_table.txt"));
  const auto csv = Read(SizingData("nvidia_smi_csv.txt"));
  const auto properties = Read(SizingData("nvidia_smi_q.txt"));
  ASSERT_EQ(csv.size(), 1u);
  EXPECT_EQ(csv[0], (GpuReading{.gpu = "0",
                                .name = "NVIDIA H200",
                                .host = "",
                                .pod = "",
                                .total = MiB(143771),
                                .used = 0,
                                .free = MiB(143156),
                                .busy = 0}));
  EXPECT_EQ(properties, csv);
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table[0].free, std::nullopt);  // the table does not say it
  EXPECT_EQ(table[0].total, csv[0].total);
  EXPECT_EQ(table[0].used, csv[0].used);
  EXPECT_EQ(table[0].name, csv[0].name);
  EXPECT_EQ(table[0].busy, csv[0].busy);
}

TEST(NvidiaSmi, TableOfSeveralGpusEndsAtTheSlicesAndProcesses) {
  const auto readings = Read(
      "+---------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4   |\n"
      "|-------------------------------+----------------------+--------------------+\n"
      "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |\n"
      "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |\n"
      "|===============================+======================+======================|\n"
      "|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                    0 |\n"
      "| N/A   31C    P0    63W / 400W |  39000MiB / 40536MiB |     87%      Default |\n"
      "|                               |                      |             Disabled |\n"
      "|   1  NVIDIA A100-SXM...  Off  | 00000000:0F:00.0 Off |                    0 |\n"
      "| N/A   30C    P0    61W / 400W |      3MiB / 40536MiB |     N/A      Default |\n"
      "|                               |                      |              Enabled |\n"
      "+-------------------------------+----------------------+----------------------+\n"
      "| MIG devices:                                                                |\n"
      "|  1    1   0   0  |     11MiB / 20096MiB  | 42      0 |  3   0    2    0    0 |\n"
      "| Processes:                                                                  |\n"
      "|    0   N/A  N/A     12345      C   python                          38997MiB |\n");
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].name, "NVIDIA A100-SXM...");
  EXPECT_EQ(readings[0].used, MiB(39000));
  EXPECT_EQ(readings[0].total, MiB(40536));
  EXPECT_EQ(readings[0].busy, 0.87);
  EXPECT_EQ(readings[1].gpu, "1");
  EXPECT_EQ(readings[1].used, MiB(3));
  EXPECT_EQ(readings[1].busy, std::nullopt);
}

TEST(NvidiaSmi, CsvGoesByItsHeading) {
  const auto readings = Read(
      "memory.used [MiB], uuid, memory.total [MiB], name\r\n"
      "1024, GPU-1, 81559, NVIDIA H100 80GB HBM3\r\n"
      "[N/A], GPU-2, 81559, NVIDIA H100 80GB HBM3\r\n"
      "something else\r\n");
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].gpu, "GPU-1");
  EXPECT_EQ(readings[0].used, MiB(1024));
  EXPECT_EQ(readings[0].total, MiB(81559));
  EXPECT_EQ(readings[1].used, std::nullopt);
}

TEST(NvidiaSmi, WithoutAGpuSaysWhatWasLookedFor) {
  for (const std::string_view text :
       {"", "0, NVIDIA H200, 143771, 0\n", "No devices were found\n", "| 1MiB / 2MiB |"}) {
    const auto readings = ReadNvidiaSmi(text);
    ASSERT_FALSE(readings.has_value()) << text;
    EXPECT_THAT(readings.error().what, HasSubstr("--format=csv"));
  }
}

TEST(NvidiaSmi, OfTooManyGpusIsRefused) {
  std::string csv = "index, memory.total [MiB]\n";
  for (size_t i = 0; i < kMaxGpus; ++i) csv += fmt::format("{}, 80 MiB\n", i);
  EXPECT_EQ(Read(csv).size(), kMaxGpus);
  csv += "1024, 80 MiB\n";
  EXPECT_FALSE(ReadNvidiaSmi(csv).has_value());
}

constexpr std::string_view kDcgm = R"(# HELP DCGM_FI_DEV_FB_FREE Framebuffer memory free (in MiB).
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="w-0"} 63
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="w-0"} 5000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-b",modelName="NVIDIA H100 80GB HBM3",Hostname="n2",pod=""} 81000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="w-0"} 76000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-b",modelName="NVIDIA H100 80GB HBM3",Hostname="n2",pod=""} NaN
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="w-0"} 559
DCGM_FI_DEV_GPU_UTIL{gpu="7",Hostname="n3"} 3
DCGM_FI_DEV_SM_CLOCK{gpu="0",Hostname="n1"} 1980
)";

TEST(Dcgm, JoinsTheMetricsOfEachGpu) {
  const auto readings = Read(kDcgm);
  ASSERT_EQ(readings.size(), 2u);  // one without memory is no reading
  EXPECT_EQ(readings[0], (GpuReading{.gpu = "0",
                                     .name = "NVIDIA H100 80GB HBM3",
                                     .host = "n1",
                                     .pod = "w-0",
                                     .total = MiB(81559),
                                     .used = MiB(76000),
                                     .free = MiB(5000),
                                     .busy = 0.63}));
  EXPECT_EQ(readings[1].host, "n2");
  EXPECT_EQ(readings[1].used, std::nullopt);
  EXPECT_EQ(readings[1].total, std::nullopt);
  EXPECT_EQ(readings[1].pod, "");
}

TEST(Dcgm, KeepsSlicesApart) {
  const auto readings = Read(
      "DCGM_FI_DEV_FB_USED{gpu=\"0\",GPU_I_ID=\"1\"} 10\n"
      "DCGM_FI_DEV_FB_USED{gpu=\"0\",GPU_I_ID=\"2\"} 20\n");
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].gpu, "0/1");
  EXPECT_EQ(readings[1].used, MiB(20));
}

TEST(Dcgm, WithoutMemoryOrWithTooManyGpusIsRefused) {
  EXPECT_THAT(ReadGpuMemory("DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"} 1\n").error().what,
              HasSubstr("DCGM_FI_DEV_FB_USED"));
  std::string page;
  for (size_t i = 0; i <= kMaxGpus; ++i) {
    page += fmt::format("DCGM_FI_DEV_FB_USED{{gpu=\"{}\"}} 1\n", i);
  }
  EXPECT_FALSE(ReadDcgm(page).has_value());
}

}  // namespace
}  // namespace fathom
