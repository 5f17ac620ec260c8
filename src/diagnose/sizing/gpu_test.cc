#include "diagnose/sizing/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "diagnose/sizing/binary_units.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;

std::string NameOf(std::string_view text) {
  const auto gpu = ParseGpu(text);
  return gpu ? gpu->name : gpu.error().what;
}

TEST(Gpu, IsKnownByEverySpellingThatIsUsual) {
  EXPECT_EQ(NameOf("H100"), "H100-80GB");
  EXPECT_EQ(NameOf("h100-80gb"), "H100-80GB");
  EXPECT_EQ(NameOf("NVIDIA H100 80GB HBM3"), "H100-80GB");
  EXPECT_EQ(NameOf("NVIDIA-H100-SXM5-80GB"), "H100-80GB");
  EXPECT_EQ(NameOf("NVIDIA H100 PCIe"), "H100-80GB");
  EXPECT_EQ(NameOf("NVIDIA H100 NVL"), "H100-NVL");
  EXPECT_EQ(NameOf("H200"), "H200");
  EXPECT_EQ(NameOf("H20"), "H20-96GB");
  EXPECT_EQ(NameOf("NVIDIA A100-SXM4-80GB"), "A100-80GB");
  EXPECT_EQ(NameOf("NVIDIA A100-PCIE-40GB"), "A100-40GB");
  EXPECT_EQ(NameOf("a100-40gb"), "A100-40GB");
  EXPECT_EQ(NameOf("NVIDIA GH200 480GB"), "GH200-96GB");
  EXPECT_EQ(NameOf("NVIDIA L40S"), "L40S");
  EXPECT_EQ(NameOf("L40"), "L40");
  EXPECT_EQ(NameOf("NVIDIA L4"), "L4");
  EXPECT_EQ(NameOf("NVIDIA A10G"), "A10G");
  EXPECT_EQ(NameOf("NVIDIA GeForce RTX 4090"), "RTX-4090");
  EXPECT_EQ(NameOf("rtx4090"), "RTX-4090");
  EXPECT_EQ(NameOf("NVIDIA RTX 6000 Ada Generation"), "RTX-6000-ADA");
  EXPECT_EQ(NameOf("NVIDIA RTX PRO 6000 Blackwell Server Edition"), "RTX-PRO-6000");
  EXPECT_EQ(NameOf("AMD Instinct MI300X OAM"), "MI300X");
  EXPECT_EQ(NameOf("Tesla V100-SXM2-16GB"), "V100-16GB");
  EXPECT_EQ(NameOf("NVIDIA B200"), "B200");
}

TEST(Gpu, IsFoundByEveryNameThatIsListed) {
  for (const std::string_view name : KnownGpus()) EXPECT_EQ(NameOf(name), name);
}

TEST(Gpu, ShowsProgramsLessThanIsOnTheBoard) {
  for (const std::string_view name : KnownGpus()) {
    const auto gpu = ParseGpu(name);
    ASSERT_TRUE(gpu.has_value());
    EXPECT_LT(gpu->visible, gpu->installed) << name;
    EXPECT_GT(static_cast<double>(gpu->visible), 0.95 * static_cast<double>(gpu->installed))
        << name;
    EXPECT_THAT(gpu->basis, HasSubstr(std::string(name)));
  }
}

TEST(Gpu, MayBeGivenAsASize) {
  EXPECT_EQ(ParseGpu("80GiB")->visible, uint64_t{80} << 30);
  EXPECT_EQ(ParseGpu("85899345920")->visible, 85899345920u);
  EXPECT_EQ(ParseGpu("141 GB")->visible, 141'000'000'000u);
  EXPECT_NEAR(static_cast<double>(ParseGpu("79.1GiB")->visible) / kGiB, 79.1, 1e-6);
  EXPECT_THAT(ParseGpu("80").error().what, HasSubstr("80GiB"));
  EXPECT_FALSE(ParseGpu("99999999999999GiB").has_value());
  EXPECT_FALSE(ParseGpu("0").has_value());
}

TEST(Gpu, IsRefusedWhereItsNameIsNotKnown) {
  EXPECT_THAT(NameOf("H1000"), HasSubstr("unknown"));
  EXPECT_THAT(NameOf("MI300"), HasSubstr("did you mean MI300X"));
  EXPECT_THAT(NameOf("A100-60GB"), HasSubstr("unknown"));
  EXPECT_THAT(NameOf("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), HasSubstr("slice"));
  EXPECT_THAT(NameOf(""), HasSubstr("unknown"));
  EXPECT_LT(NameOf(std::string(100000, 'x')).size(), 1000u);
}

TEST(Gpu, ThatWasMeasuredIsBelievedMoreThanItsName) {
  const uint64_t total = uint64_t{81559} << 20;
  const Gpu known = MeasuredGpu("NVIDIA H100 80GB HBM3", total);
  EXPECT_EQ(known.name, "H100-80GB");
  EXPECT_EQ(known.visible, total) << "79.65 GiB, whatever other H100s have";
  EXPECT_EQ(known.basis, "79.65 GiB that were measured");
  const Gpu partly = MeasuredGpu("NVIDIA H100 80GB HBM3", total, uint64_t{81008} << 20);
  EXPECT_EQ(partly.visible, uint64_t{81008} << 20);
  EXPECT_EQ(partly.basis, "79.11 GiB used or free of the 79.65 GiB that were measured");
  const Gpu foreign = MeasuredGpu("Frobnicator 9", uint64_t{40000} << 20, 0);
  EXPECT_EQ(foreign.name, "Frobnicator 9");
  EXPECT_EQ(foreign.visible, uint64_t{40000} << 20);
}

}  // namespace
}  // namespace fathom
