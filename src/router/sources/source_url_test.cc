#include "router/sources/source_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <class T>
std::string UrlProblem(const Result<T>& result) {
  return result ? "" : result.error().what;
}

TEST(SourceUrl, AServiceHasANamespaceANameAndAPort) {
  const auto url = KubeServiceUrl::Parse("k8s://prod/vllm-decode:http");
  ASSERT_TRUE(url) << url.error().what;
  EXPECT_EQ(url->ns, "prod");
  EXPECT_EQ(url->service, "vllm-decode");
  EXPECT_EQ(url->port, "http");
  EXPECT_EQ(KubeServiceUrl::Parse("k8s://prod/vllm:8000")->port, "8000");
  // A Service's port may have a longer name than a container's.
  EXPECT_TRUE(KubeServiceUrl::Parse("k8s://prod/vllm:inference-requests"));
}

TEST(SourceUrl, AWrongServiceSaysWhatIsWrongAndTheForm) {
  EXPECT_EQ(UrlProblem(KubeServiceUrl::Parse("k8s://vllm:8000")),
            "'k8s://vllm:8000': there is no / after the namespace; the form is "
            "k8s://NAMESPACE/SERVICE:PORT");
  EXPECT_THAT(UrlProblem(KubeServiceUrl::Parse("k8s://prod/vllm")), HasSubstr("there is no port"));
  EXPECT_THAT(UrlProblem(KubeServiceUrl::Parse("k8s:///vllm:1")),
              HasSubstr("'' is no name of a namespace"));
  for (const char* text : {"k8s://Prod/vllm:1", "k8s://prod/VLLM:1", "k8s://prod/-a:1",
                           "k8s://prod/a-:1", "k8s://prod/a.b:1", "k8s://prod/a/b:1",
                           "k8s://prod/a:0", "k8s://prod/a:65536", "k8s://prod/a:", "k8s://prod/:1",
                           "k8s://prod/a:HTTP", "k8s://prod/a:99999999999999999999"}) {
    EXPECT_THAT(UrlProblem(KubeServiceUrl::Parse(text)),
                AllOf(HasSubstr(text), HasSubstr("k8s://NAMESPACE/SERVICE:PORT")));
  }
  EXPECT_TRUE(KubeServiceUrl::Parse("k8s://" + std::string(63, 'a') + "/a:1"));
  EXPECT_FALSE(KubeServiceUrl::Parse("k8s://" + std::string(64, 'a') + "/a:1"));
  EXPECT_LT(UrlProblem(KubeServiceUrl::Parse("k8s://" + std::string(1 << 20, 'a'))).size(), 600);
}

TEST(SourceUrl, PodsAreFoundByASelectorWithCommas) {
  const auto url = KubePodsUrl::Parse("k8s-pods://prod/app.kubernetes.io/name=vllm,tier!=cpu:8000");
  ASSERT_TRUE(url) << url.error().what;
  EXPECT_EQ(url->ns, "prod");
  EXPECT_EQ(url->selector, "app.kubernetes.io/name=vllm,tier!=cpu");
  EXPECT_EQ(url->port, "8000");
  for (const char* selector :
       {"app=vllm", "app==vllm", "app", "!app", "app=", "role in (prefill,decode)",
        "role notin (cpu), gpu", "role in ( a , b ),!spot,tier = gpu", "a in (),b"}) {
    const auto found = KubePodsUrl::Parse("k8s-pods://prod/" + std::string(selector) + ":http");
    ASSERT_TRUE(found) << found.error().what;
    EXPECT_EQ(found->selector, selector);
  }
}

TEST(SourceUrl, AWrongSelectorIsNamed) {
  for (const char* selector :
       {"", "app=a b", "app=vllm,", ",app", "=a", "app in a,b", "app in (a", "app>(a)", "a/b/c=d",
        "app=-a", "app=vllm;x", "!=a", "app within (a)", "app=a)", "Bad_/x=1"}) {
    EXPECT_THAT(
        UrlProblem(KubePodsUrl::Parse("k8s-pods://prod/" + std::string(selector) + ":8000")),
        AllOf(HasSubstr("is no part of a label selector"),
              HasSubstr("the form is k8s-pods://NAMESPACE/SELECTOR:PORT")))
        << selector;
  }
  for (const char* port : {"sixteen-letters-x", "-a", "a--b", "123456", "0", ""}) {
    EXPECT_THAT(UrlProblem(KubePodsUrl::Parse("k8s-pods://prod/app=a:" + std::string(port))),
                HasSubstr("is neither the name of a container's port nor 1 to 65535"))
        << port;
  }
}

TEST(SourceUrl, APoolHasANamespaceAndAName) {
  const auto url = KubePoolUrl::Parse("k8s-pool://prod/llama-3.1");
  ASSERT_TRUE(url) << url.error().what;
  EXPECT_EQ(url->ns, "prod");
  EXPECT_EQ(url->name, "llama-3.1");
  EXPECT_THAT(UrlProblem(KubePoolUrl::Parse("k8s-pool://prod/llama:8000")),
              HasSubstr("the pool itself names its ports"));
  EXPECT_THAT(UrlProblem(KubePoolUrl::Parse("k8s-pool://prod/a..b")),
              HasSubstr("'a..b' is no name of an InferencePool"));
  EXPECT_FALSE(KubePoolUrl::Parse("k8s-pool://prod"));
}

TEST(SourceUrl, AFileHasAnAbsolutePath) {
  EXPECT_EQ(FileUrl::Parse("file:///etc/fathom/workers.yaml")->path, "/etc/fathom/workers.yaml");
  EXPECT_EQ(FileUrl::Parse("file:///a%20b.yaml")->path, "/a b.yaml");
  EXPECT_EQ(UrlProblem(FileUrl::Parse("file://workers.yaml")),
            "'file://workers.yaml': the path does not begin with /; the form is file:///PATH with "
            "three slashes");
  EXPECT_FALSE(FileUrl::Parse("file:///etc/"));
  EXPECT_FALSE(FileUrl::Parse("file:///a%00b"));
  EXPECT_FALSE(FileUrl::Parse("workers.yaml"));
}

}  // namespace
}  // namespace fathom
