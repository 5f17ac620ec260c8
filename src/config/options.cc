#include "config/option.h"

namespace fathom {
namespace {

using enum OptionType;
using enum OptionSection;

constexpr auto kServe = static_cast<unsigned>(Command::kServe);
constexpr auto kMock = static_cast<unsigned>(Command::kMock);
constexpr auto kDemo = static_cast<unsigned>(Command::kDemo);
constexpr auto kListen = static_cast<unsigned>(Command::kListen);
constexpr auto kTokenize = static_cast<unsigned>(Command::kTokenize);
constexpr auto kDoctor = static_cast<unsigned>(Command::kDoctor);
constexpr auto kLint = static_cast<unsigned>(Command::kLint);
constexpr auto kReady = static_cast<unsigned>(Command::kReady);
constexpr auto kRegister = static_cast<unsigned>(Command::kRegister);

constexpr double kMillisecond = 0.001;
constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
constexpr double kYear = 365 * kDay;
constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;
constexpr double kMillion = 1e6;
constexpr double kTiB = 1024 * kGiB;

constexpr std::string_view kRouterModes[] = {
    "kv", "prefix-hash", "round-robin", "random", "power-of-two", "least-loaded", "direct"};
// Without direct, which is for clients that name their worker.
constexpr std::string_view kComparedModes[] = {
    "none", "kv", "prefix-hash", "round-robin", "random", "power-of-two", "least-loaded"};
constexpr std::string_view kEngines[] = {"vllm", "sglang", "trtllm"};
constexpr std::string_view kEnginesOrAny[] = {"any", "vllm", "sglang", "trtllm"};
constexpr std::string_view kReportFormats[] = {"text", "json", "markdown", "html"};
constexpr std::string_view kInputForms[] = {"auto",       "text",     "chat",
                                            "completion", "messages", "responses"};
constexpr std::string_view kProfiles[] = {"h200-llama-3.1-8b", "h200-qwen3-32b", "polynomial",
                                          "paced"};
constexpr std::string_view kSwitch[] = {"on", "off"};
constexpr std::string_view kConflictRules[] = {"refuse", "mixed"};
constexpr std::string_view kHashForms[] = {"int", "bytes"};
constexpr std::string_view kReadyWhen[] = {"routable", "informed", "trusted"};
constexpr std::string_view kPromptFaults[] = {"none", "bos", "template", "vocabulary"};
constexpr std::string_view kEventFaults[] = {"none", "no-removals", "hide-salt", "hide-lora"};
constexpr std::string_view kCachingReports[] = {"truth", "none"};
constexpr std::string_view kDepartures[] = {"exit", "abort", "abort-running", "silent"};
constexpr std::string_view kLogLevels[] = {"debug", "info", "warn", "error", "off"};
constexpr std::string_view kLogFormats[] = {"text", "json"};

// clang-format off
constexpr Option kOptions[] = {
    // Listening
    {.name = "host", .type = kText, .fallback = "127.0.0.1", .commands = kServe,
     .section = kListening, .placeholder = "HOST", .dynamo = {{"DYN_HTTP_HOST"}},
     .aliases = {"http-host"},
     .help = "Address to listen on; 0.0.0.0 or :: for every interface."},
    {.name = "port", .type = kInteger, .fallback = "8000", .range = {0, 65535}, .commands = kServe,
     .section = kListening, .placeholder = "PORT", .dynamo = {{"DYN_HTTP_PORT"}},
     .aliases = {"http-port"},
     .help = "Port to listen on; 0 picks a free one."},
    {.name = "host", .type = kText, .fallback = "127.0.0.1", .commands = kMock,
     .section = kListening, .placeholder = "HOST",
     .help = "Address to listen on."},
    {.name = "port", .type = kInteger, .fallback = "8100", .range = {0, 65535}, .commands = kMock,
     .section = kListening, .placeholder = "PORT",
     .help = "Port to listen on; 0 picks a free one."},
    {.name = "port", .type = kInteger, .fallback = "0", .range = {0, 65535}, .commands = kDemo,
     .section = kListening, .placeholder = "PORT",
     .help = "Port of the router; 0 picks a free one; the router that it is compared with always "
             "picks a free one."},
    {.name = "host", .type = kText, .fallback = "127.0.0.1", .commands = kReady,
     .section = kListening, .placeholder = "HOST", .dynamo = {{"DYN_HTTP_HOST"}},
     .aliases = {"http-host"},
     .help = "Address that the router listens on; 0.0.0.0 or :: is asked on loopback."},
    {.name = "port", .type = kInteger, .fallback = "8000", .range = {1, 65535}, .commands = kReady,
     .section = kListening, .placeholder = "PORT", .dynamo = {{"DYN_HTTP_PORT"}},
     .aliases = {"http-port"},
     .help = "Port that the router listens on."},
    {.name = "worker", .type = kText, .fallback = "", .commands = kReady,
     .section = kListening, .placeholder = "URL",
     .help = "Ask whether the router has admitted this worker, instead of whether it is ready itself."},
    {.name = "admin-listen", .type = kText, .fallback = "", .commands = kServe,
     .section = kListening, .placeholder = "HOST:PORT",
     .help = "Serve the admin and debug routes here instead of on the main port."},
    {.name = "metrics-urls", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kListening,
     .help = "Show the URLs of workers in fathom_worker_info on the main port too; without this only "
             "the metrics of --admin-listen contain them."},
    {.name = "threads", .type = kInteger, .fallback = "0", .range = {0, 256},
     .commands = kServe, .section = kListening,
     .help = "Event loops; 0 means one per core."},
    {.name = "threads", .type = kInteger, .fallback = "1", .range = {1, 256},
     .commands = kMock, .section = kListening,
     .help = "Event loops of a paced engine; a simulated one has one."},
    {.name = "config", .type = kText, .fallback = "", .commands = kServe,
     .section = kListening, .placeholder = "FILE",
     .help = "YAML file with options, and workers as maps under the key workers."},
    {.name = "print-config", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kListening,
     .help = "Print every option with its value and its source, then exit."},

    // Workers
    {.name = "worker-urls", .type = kList, .fallback = "", .commands = kServe,
     .section = kWorkers, .placeholder = "URL...",
     .help = "Engines to route to, added to the workers of the YAML file: http://host:port is one "
             "worker; dns+http://name:port, k8s://, k8s-pods://, k8s-pool://, etcd:// and file:/// "
             "are sources of workers (docs/workers.md).",
     .urls = true},
    {.name = "models", .type = kList, .fallback = "", .commands = kServe,
     .section = kWorkers, .placeholder = "GLOB...",
     .help = "Follow and serve only the models whose names match one of these patterns (* is any text, "
             "? one character); requests for others go to a replica that has them, or get 404."},
    {.name = "etcd-user", .type = kText, .fallback = "", .commands = kServe | kRegister,
     .section = kWorkers, .placeholder = "NAME",
     .help = "User for etcd; its password is in --etcd-password-file or --etcd-password-env."},
    {.name = "etcd-password-file", .type = kText, .fallback = "", .commands = kServe | kRegister,
     .section = kWorkers, .placeholder = "FILE",
     .help = "File that holds the password of --etcd-user; a line end after it does not count."},
    {.name = "etcd-password-env", .type = kText, .fallback = "", .commands = kServe | kRegister,
     .section = kWorkers, .placeholder = "NAME",
     .help = "Environment variable that holds the password of --etcd-user."},
    {.name = "etcd-ca-file", .type = kText, .fallback = "", .commands = kServe | kRegister,
     .section = kWorkers, .placeholder = "FILE",
     .help = "Verify etcds:// servers against these certificates instead of the system's."},
    {.name = "etcd", .type = kText, .fallback = "", .commands = kRegister, .section = kWorkers,
     .placeholder = "URL",
     .help = "Servers of etcd, etcd://HOST:2379,HOST:2379, or etcds:// with TLS; a path after them is "
             "the prefix."},
    {.name = "prefix", .type = kText, .fallback = "", .commands = kRegister, .section = kWorkers,
     .placeholder = "PREFIX",
     .help = "The worker's key is PREFIX/ and its URL; routers follow etcd://HOST:2379/PREFIX."},
    {.name = "url", .type = kText, .fallback = "", .commands = kRegister, .section = kWorkers,
     .placeholder = "URL",
     .help = "URL of the engine as routers reach it, http://HOST:PORT."},
    {.name = "entry", .type = kText, .fallback = "", .commands = kRegister, .section = kWorkers,
     .placeholder = "JSON",
     .help = "Other fields of the worker entry, as in POST /workers."},
    {.name = "ttl", .type = kDuration, .fallback = "10s", .range = {3, kHour},
     .commands = kRegister, .section = kWorkers,
     .help = "Life of the lease: a registration whose process is gone disappears after this time."},
    {.name = "kubeconfig", .type = kText, .fallback = "", .commands = kServe,
     .section = kWorkers, .placeholder = "FILE",
     .help = "Access to the cluster of k8s:// workers; without it KUBECONFIG, else "
             "~/.kube/config, else the account of the pod; the current context counts."},
    {.name = "dns-interval", .type = kDuration, .fallback = "5s",
     .range = {100 * kMillisecond, kHour}, .commands = kServe, .section = kWorkers,
     .help = "Time between two lookups of a dns+http:// worker's name."},
    {.name = "dns-servers", .type = kList, .fallback = "", .commands = kServe,
     .section = kWorkers, .placeholder = "IP:PORT...",
     .help = "Name servers to ask instead of those in /etc/resolv.conf, whose search domains and "
             "options still apply; the port is 53 if none is given."},
    {.name = "workers", .type = kInteger, .fallback = "4", .range = {1, 64}, .commands = kDemo,
     .section = kWorkers,
     .help = "Mock workers of each router."},

    // Routing
    {.name = "router-mode", .type = kChoice, .fallback = "kv", .choices = kRouterModes,
     .commands = kServe, .section = kRouting, .placeholder = "MODE",
     .dynamo = {{"DYN_ROUTER_MODE"}},
     .help = "How a worker is chosen: kv by cache contents and load, prefix-hash by the beginning "
             "of the prompt, direct by the client itself, the others by load alone."},
    {.name = "router-kv-events", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kRouting, .dynamo = {{"DYN_ROUTER_USE_KV_EVENTS"}, {"DYN_USE_KV_EVENTS"}},
     .help = "Whether the router learns cache contents from the workers' KV events; without them "
             "it estimates them from where prompts were sent."},
    {.name = "router-kv-overlap-score-credit", .type = kNumber, .fallback = "1", .range = {0, 1},
     .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT"}},
     .help = "How much of a cached token's prefill counts as saved; 0 ignores the caches."},
    {.name = "router-prefill-load-scale", .type = kNumber, .fallback = "64", .range = {0, kMillion},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_PREFILL_LOAD_SCALE"}},
     .help = "Price of prefilling a token in units of decoding with one more token of context."},
    {.name = "router-kv-overlap-score-weight", .type = kNumber, .fallback = "64",
     .range = {0, kMillion}, .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT"}, {"DYN_OVERLAP_SCORE_WEIGHT"}},
     .aliases = {"kv-overlap-score-weight"},
     .help = "Older name of router-prefill-load-scale, where 0 also sets the credit to 0; used "
             "only if neither of the two is set."},
    {.name = "router-decode-active-request-weight", .type = kNumber, .fallback = "0",
     .range = {0, 1e9}, .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT"}},
     .help = "Price of each request that a rank is serving, in tokens of context."},
    {.name = "router-host-cache-hit-weight", .type = kNumber, .fallback = "0.75", .range = {0, 1},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_HOST_CACHE_HIT_WEIGHT"}},
     .help = "What a token cached in host memory is worth, relative to one on the device."},
    {.name = "router-disk-cache-hit-weight", .type = kNumber, .fallback = "0.25", .range = {0, 1},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_DISK_CACHE_HIT_WEIGHT"}},
     .help = "What a token cached on disk or in remote storage is worth, relative to one on the "
             "device."},
    {.name = "router-temperature", .type = kNumber, .fallback = "0", .range = {0, 100},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_TEMPERATURE"}},
     .help = "Above 0, ranks are sampled at random with a preference for low cost, instead of "
             "taking the cheapest."},
    {.name = "router-belief-ttl", .type = kDuration, .fallback = "1s", .range = {0, kHour},
     .commands = kServe, .section = kRouting,
     .help = "How long after its first byte a prompt is assumed to be cached on its rank, until "
             "KV events confirm it."},
    {.name = "router-ttl", .type = kDuration, .fallback = "120s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_TTL_SECS"}},
     .aliases = {"router-ttl-secs"},
     .help = "Without KV events, or without tokens: how long a prompt is assumed to stay cached on "
             "its rank."},
    {.name = "router-prefix-hash-tokens", .type = kInteger, .fallback = "1024",
     .range = {1, kMillion}, .commands = kServe, .section = kRouting,
     .help = "How many tokens at the beginning of a prompt decide where prefix-hash sends it."},
    {.name = "router-prefix-hash-bound", .type = kNumber, .fallback = "1.25", .range = {1, 1000},
     .commands = kServe, .section = kRouting,
     .help = "Most requests that prefix-hash lets a rank have, as a multiple of the mean."},
    {.name = "router-queue-threshold", .type = kNumber, .fallback = "2", .range = {0, kMillion},
     .commands = kServe, .section = kRouting, .dynamo = {{"DYN_ROUTER_QUEUE_THRESHOLD"}},
     .help = "Steps of prefill, each as large as the engine reports (else 8192 tokens), that may "
             "be queued on a rank; when all ranks have that many, or are full, requests wait in "
             "the router; 0 disables waiting; what all replicas have placed counts."},
    {.name = "router-queue-timeout", .type = kDuration, .fallback = "60s", .range = {0, kHour},
     .commands = kServe, .section = kRouting,
     .help = "How long a request waits for a rank with free capacity; after that it goes to the "
             "best rank anyway."},
    {.name = "routing-headers", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kRouting,
     .help = "Whether answers carry x-fathom-worker, x-fathom-dp-rank, x-fathom-cached-tokens and, if "
             "another replica served the request, x-fathom-replica."},
    {.name = "decisions-kept", .type = kInteger, .fallback = "1024", .range = {0, kMillion},
     .commands = kServe, .section = kRouting,
     .help = "Latest decisions that GET /debug/decisions can show."},
    {.name = "router-mode", .type = kChoice, .fallback = "kv", .choices = kRouterModes,
     .commands = kDemo, .section = kRouting, .placeholder = "MODE",
     .help = "How a worker is chosen."},
    {.name = "compare", .type = kChoice, .fallback = "round-robin", .choices = kComparedModes,
     .commands = kDemo, .section = kRouting, .placeholder = "MODE",
     .help = "How a second router, with workers of its own, chooses for the same conversations; "
             "none runs the first alone."},
    {.name = "session-affinity-ttl", .type = kDuration, .fallback = "10m", .range = {0, kYear},
     .commands = kServe, .section = kRouting,
     .dynamo = {{"DYN_ROUTER_SESSION_AFFINITY_TTL_SECS"}},
     .aliases = {"router-session-affinity-ttl-secs"},
     .help = "How long a session with an id stays with its worker after its last request; 0 turns "
             "affinity off."},
    {.name = "session-hints", .type = kList,
     .fallback = "x-claude-code-session-id,thread-id,x-dynamo-session-id,prompt_cache_key,"
                 "metadata.user_id,safety_identifier,user",
     .commands = kServe, .section = kRouting, .placeholder = "NAME...",
     .help = "Headers and members by which agents name their session, the first that is present "
             "counts: of equal ranks, the one that served the session last is chosen; none turns "
             "hints off."},
    {.name = "seed", .type = kInteger, .fallback = "0", .range = {0, 0x1p53}, .commands = kServe,
     .section = kRouting,
     .help = "Seed of the random choices, so that a run can be repeated; 0 picks a random seed."},

    // Tokens
    {.name = "model-path", .type = kList, .fallback = "", .commands = kServe, .section = kTokens,
     .placeholder = "[MODEL=]DIR...", .dynamo = {{"DYN_MODEL_PATH"}},
     .help = "Folders with tokenizer.json, tokenizer_config.json and the chat template, so that "
             "the router tokenizes prompts: those of the model of that name, or of every model "
             "without a folder of its own; hf:ORG/NAME[@REVISION] in place of a folder downloads "
             "these files into the Hugging Face cache."},
    {.name = "find-model-files", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kTokens,
     .help = "Look for the files of models without a model-path, in the Hugging Face cache of this "
             "machine and below model-root."},
    {.name = "model-root", .type = kList, .fallback = "", .commands = kServe, .section = kTokens,
     .placeholder = "DIR...",
     .help = "Folders below which files of models are looked for: as ORG/NAME, NAME or a mounted "
             "Hugging Face cache, and at the path that an engine reports if it lies below them."},
    {.name = "hub-timeout", .type = kDuration, .fallback = "20s", .range = {0, kHour},
     .commands = kServe, .section = kTokens,
     .help = "How long the start waits for downloads of model files; after that they continue "
             "while requests are served."},
    {.name = "tokenizer-path", .type = kList, .fallback = "", .commands = kServe,
     .section = kTokens, .placeholder = "[MODEL=]FILE|DIR...",
     .help = "Another tokenizer.json, or its folder, in place of the one in model-path."},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kMock, .section = kTokens,
     .placeholder = "DIR",
     .help = "Folder with tokenizer.json, tokenizer_config.json and the chat template, for real "
             "tokens in place of the mock's own."},
    {.name = "forward-tokens", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kTokens,
     .help = "Send token ids to engines that accept them, so that they do not tokenize again: "
             "completions to all engines, chats to SGLang and TensorRT-LLM."},
    {.name = "literal-user-text", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kTokens,
     .help = "Treat special tokens in the messages of users and tools as plain text, where the "
             "engine accepts token ids (not vLLM's chats); needs forward-tokens."},
    {.name = "text-fallback", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kTokens,
     .help = "Route a prompt whose tokens are not known by the text that it shares with earlier "
             "prompts, instead of by load alone."},
    {.name = "tokenize-threads", .type = kInteger, .fallback = "0", .range = {0, 64},
     .commands = kServe, .section = kTokens,
     .help = "Threads that tokenize long new texts; 0 means half of the cores, at most 4."},
    {.name = "tokenize-timeout", .type = kDuration, .fallback = "250ms", .range = {0, kHour},
     .commands = kServe, .section = kTokens,
     .help = "How long a request waits at least for its text to be tokenized before it is routed by "
             "the tokens known so far, and longer, up to 2s, if its prefill takes longer than that; "
             "0 asks no engine."},
    {.name = "tokenize-cache-bytes", .type = kBytes, .fallback = "64MiB", .range = {0, 1024 * kGiB},
     .commands = kServe, .section = kTokens,
     .help = "Memory for the cache of tokenized texts."},

    // Trust
    {.name = "ask-usage", .type = kFlag, .fallback = "true", .commands = kServe, .section = kTrust,
     .help = "Ask engines in streams how many tokens of a prompt they found cached, and remove "
             "the answer before the client sees it; without it, only what engines report unasked "
             "is read."},
    {.name = "no-events-after", .type = kDuration, .fallback = "5s",
     .range = {kMillisecond, kHour}, .commands = kServe, .section = kTrust,
     .help = "A rank that has served 64 requests over at least this time and published no KV event "
             "is doubted."},
    {.name = "event-lag-limit", .type = kDuration, .fallback = "2s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kTrust,
     .help = "A rank whose KV events repeatedly arrive later than this is doubted."},
    {.name = "ready-when", .type = kChoice, .fallback = "routable", .choices = kReadyWhen,
     .commands = kServe, .section = kTrust, .placeholder = "WHAT",
     .help = "When GET /ready answers 200: routable means as soon as a worker can be routed to; "
             "informed means also that the index was taken over from another replica, as far as one has "
             "it; trusted means only while no routable rank is doubted and the prompts of every model "
             "are read."},
    {.name = "trust-memory", .type = kBytes, .fallback = "64MiB", .range = {0, 1024 * kGiB},
     .commands = kServe, .section = kTrust,
     .help = "Memory for records of blocks that are no longer cached, used to explain why a known "
             "prefix was prefilled again; 0 turns these explanations off."},

    // Replicas
    {.name = "replicas", .type = kText, .fallback = "", .commands = kServe, .section = kReplicas,
     .placeholder = "URL",
     .help = "Share loads, sent prompts, sessions and the index with the other routers of the group: "
             "nats://HOST:4222 (tls:// with TLS), zmq://HOST:PORT,HOST:PORT, dns+zmq://NAME:PORT or "
             "k8s+zmq://NAMESPACE/SERVICE:PORT (docs/replicas.md)."},
    {.name = "replica-listen", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "HOST:PORT",
     .help = "Where the other replicas connect to; needed for all but NATS."},
    {.name = "replica-group", .type = kText, .fallback = "fathom", .commands = kServe,
     .section = kReplicas, .placeholder = "NAME",
     .help = "Routers with the same group and key share; others on the same carrier are left alone."},
    {.name = "replica-id", .type = kText, .fallback = "", .commands = kServe, .section = kReplicas,
     .placeholder = "ID",
     .help = "Name of this replica, another one for each; without it the host's name and the port."},
    {.name = "replica-key-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "File with the key that all replicas of the group share, at least 16 bytes; messages "
             "that are not sealed with it are dropped."},
    {.name = "replica-open", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kReplicas,
     .help = "Share without a key: every program that reaches the carrier can steer requests; "
             "requests are not forwarded."},
    {.name = "replica-timeout", .type = kDuration, .fallback = "5s", .range = {2, kHour},
     .commands = kServe, .section = kReplicas,
     .help = "What a replica has placed is forgotten when it was not heard for this time."},
    {.name = "replica-url", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "URL",
     .help = "Where the other replicas reach this one, to forward requests for its models; needs "
             "--replica-key-file, and must lead to replicas with the same --models."},
    {.name = "replica-ca-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "Verify https:// URLs of other replicas against these certificates instead of the "
             "system's, when requests are forwarded."},
    {.name = "nats-user", .type = kText, .fallback = "", .commands = kServe, .section = kReplicas,
     .placeholder = "NAME",
     .help = "User for NATS; its password is in --nats-password-file."},
    {.name = "nats-password-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "File that holds the password of --nats-user; a line end after it does not count."},
    {.name = "nats-token-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "File that holds the token for NATS; a line end after it does not count."},
    {.name = "nats-nkey-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "File with the seed of an nkey for NATS."},
    {.name = "nats-creds-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "Credentials file for NATS: a user's JWT with its seed."},
    {.name = "nats-ca-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "Verify NATS servers against these certificates instead of the system's."},
    {.name = "nats-cert-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "Certificate that this router shows to NATS servers, with its chain; needs "
             "--nats-key-file."},
    {.name = "nats-key-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kReplicas, .placeholder = "FILE",
     .help = "Private key of --nats-cert-file."},

    // Relay
    {.name = "connect-timeout", .type = kDuration, .fallback = "2s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kRelay,
     .help = "How long connecting to a worker may take, the lookup of its name included."},
    {.name = "first-byte-timeout", .type = kDuration, .fallback = "600s",
     .range = {kMillisecond, kYear}, .commands = kServe, .section = kRelay,
     .help = "How long a worker may take until the first byte of its answer's body."},
    {.name = "idle-timeout", .type = kDuration, .fallback = "120s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRelay,
     .help = "How long a worker may be silent inside an answer."},
    {.name = "request-timeout", .type = kDuration, .fallback = "3600s",
     .range = {kMillisecond, kYear}, .commands = kServe, .section = kRelay,
     .help = "How long a request may take in all."},
    {.name = "write-timeout", .type = kDuration, .fallback = "300s", .range = {kMillisecond, kYear},
     .commands = kServe, .section = kRelay,
     .help = "How long a client that does not read its answer is kept."},
    {.name = "keep-alive-timeout", .type = kDuration, .fallback = "75s",
     .range = {kMillisecond, kDay}, .commands = kServe, .section = kRelay,
     .help = "How long an idle client connection is kept."},
    // uvicorn, which most engines run on, closes after 5 s: the router must close first.
    {.name = "upstream-keep-alive-timeout", .type = kDuration, .fallback = "4s",
     .range = {0, kDay}, .commands = kServe, .section = kRelay,
     .help = "How long an idle connection to a worker is kept; keep it below the worker's own "
             "timeout, which is 5s by default under uvicorn."},
    {.name = "pool-size", .type = kInteger, .fallback = "256", .range = {0, 65536},
     .commands = kServe, .section = kRelay,
     .help = "Idle connections kept per worker and thread."},
    {.name = "silent-stream-grace", .type = kDuration, .fallback = "5s", .range = {0, kHour},
     .commands = kServe, .section = kRelay,
     .help = "How long to wait for a silent answer once its worker's listener is closed."},
    {.name = "drain-timeout", .type = kDuration, .fallback = "30s", .range = {0, kDay},
     .commands = kServe, .section = kRelay,
     .dynamo = {{"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"}},
     .help = "How long running requests may take to finish after a signal to stop."},

    // Limits
    {.name = "max-in-flight", .type = kInteger, .fallback = "10000", .range = {1, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Requests being served at once, for each router; more of them wait."},
    {.name = "max-waiting", .type = kInteger, .fallback = "1000", .range = {0, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Requests that may wait for their turn, for each router; more of them are refused."},
    {.name = "queue-timeout", .type = kDuration, .fallback = "30s", .range = {0, kDay},
     .commands = kServe, .section = kLimits,
     .help = "How long a request may wait for its turn."},
    {.name = "max-connections", .type = kInteger, .fallback = "20000", .range = {1, kMillion},
     .commands = kServe, .section = kLimits,
     .help = "Client connections open at once."},
    {.name = "max-body-size", .type = kBytes, .fallback = "192MiB", .range = {kKiB, 64 * kGiB},
     .commands = kServe, .section = kLimits, .dynamo = {{"DYN_HTTP_BODY_LIMIT_MB", "MiB"}},
     .help = "Largest request body."},
    {.name = "max-body-memory", .type = kBytes, .fallback = "4GiB",
     .range = {kMiB, 1024 * kGiB}, .commands = kServe, .section = kLimits,
     .help = "Total memory for request bodies being read and served; requests that do not fit get "
             "503; reading their prompts may take as much again, and those that do not fit are "
             "routed by load."},
    {.name = "max-head-size", .type = kBytes, .fallback = "64KiB", .range = {kKiB, kMiB},
     .commands = kServe, .section = kLimits,
     .help = "Largest request or answer head: the first line and all headers."},
    {.name = "head-timeout", .type = kDuration, .fallback = "10s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kLimits,
     .help = "How long a client may take to send its request's head."},
    {.name = "body-timeout", .type = kDuration, .fallback = "30s", .range = {kMillisecond, kHour},
     .commands = kServe, .section = kLimits,
     .help = "How long a client may make no progress on its request's body."},

    // Retries
    {.name = "retry-attempts", .type = kInteger, .fallback = "3", .range = {1, 10},
     .commands = kServe, .section = kRetries,
     .help = "Tries in all for a request whose worker fails before the first byte."},
    {.name = "retry-budget", .type = kNumber, .fallback = "0.2", .range = {0, 1},
     .commands = kServe, .section = kRetries,
     .help = "Retries allowed per request on average, for each router of its own requests, so that "
             "retries do not multiply the load during an outage."},
    {.name = "retry-answer-size", .type = kBytes, .fallback = "1MiB", .range = {0, kGiB},
     .commands = kServe, .section = kRetries,
     .help = "An answer that is not streamed is held until it is complete, up to this size and 256 "
             "MiB in all, so that one that an engine ends early can be retried; with 0 none is held."},
    {.name = "circuit-breaker-failures", .type = kInteger, .fallback = "5", .range = {1, kMillion},
     .commands = kServe, .section = kRetries,
     .help = "Failures in a row after which a worker gets no requests for a while."},
    {.name = "circuit-breaker-open", .type = kDuration, .fallback = "5s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe, .section = kRetries,
     .help = "How long such a worker gets no requests before one request tries it again."},

    // Health
    {.name = "health-check-interval", .type = kDuration, .fallback = "2s",
     .range = {50 * kMillisecond, kHour}, .commands = kServe | kRegister, .section = kHealth,
     .help = "Time between two health checks of a worker."},
    {.name = "health-check-timeout", .type = kDuration, .fallback = "2s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe | kRegister, .section = kHealth,
     .help = "How long a worker may take to answer a health check."},
    {.name = "health-check-failures", .type = kInteger, .fallback = "2", .range = {1, 1000},
     .commands = kServe | kRegister, .section = kHealth,
     .help = "Failed checks in a row after which a worker is unhealthy."},
    {.name = "health-check-path", .type = kText, .fallback = "/health", .commands = kServe | kRegister,
     .section = kHealth, .placeholder = "PATH",
     .help = "Path that a health check asks for."},
    {.name = "engine-load-interval", .type = kDuration, .fallback = "2s", .range = {0, kHour},
     .commands = kServe, .section = kHealth,
     .help = "Time between two polls of a worker's capacity and load; at least 10s for "
             "TensorRT-LLM, whose answer can be read only once; 0 polls only once, when a worker "
             "joins."},

    // Security
    {.name = "tls-cert", .type = kText, .fallback = "", .commands = kServe, .section = kSecurity,
     .placeholder = "FILE", .dynamo = {{"DYN_TLS_CERT_PATH"}}, .aliases = {"tls-cert-path"},
     .help = "Certificate chain in PEM; with tls-key, the port speaks HTTPS."},
    {.name = "tls-key", .type = kText, .fallback = "", .commands = kServe, .section = kSecurity,
     .placeholder = "FILE", .dynamo = {{"DYN_TLS_KEY_PATH"}}, .aliases = {"tls-key-path"},
     .help = "Private key in PEM that belongs to tls-cert."},
    {.name = "api-key", .type = kSecretList, .fallback = "", .commands = kServe,
     .section = kSecurity,
     .help = "Client keys; a request must present one of them as a bearer token; without any, "
             "every client is accepted."},
    {.name = "api-keys-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "FILE",
     .help = "File with more client keys, one per line."},
    {.name = "admin-key", .type = kSecret, .fallback = "", .commands = kServe,
     .section = kSecurity,
     .help = "Key that the admin and debug routes require."},
    {.name = "admin-key-file", .type = kText, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "FILE",
     .help = "File with admin keys, one per line; each of them is accepted."},
    {.name = "open-admin", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kSecurity,
     .help = "Serve the admin and debug routes without an admin key even if other machines reach "
             "them, or if clients need keys; without this the router does not start, or closes "
             "them."},
    {.name = "admin-tls-cert", .type = kText, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "FILE",
     .help = "Certificate chain in PEM; with admin-tls-key, the address of admin-listen speaks "
             "HTTPS."},
    {.name = "admin-tls-key", .type = kText, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "FILE",
     .help = "Private key in PEM that belongs to admin-tls-cert."},
    {.name = "pass-routes", .type = kList, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "PATH...",
     .help = "Paths that are passed to workers beside those of inference, for example /v1/files; "
             "/v1/files/* is everything below it."},
    {.name = "allow-transfer-fields", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kSecurity,
     .help = "Pass kv_transfer_params, bootstrap_* and disaggregated_params of clients to workers; "
             "with them a client can read the cache of others, or stop an engine."},
    {.name = "worker-key-env", .type = kList, .fallback = "", .commands = kServe,
     .section = kSecurity, .placeholder = "NAME...",
     .help = "Environment variables that api_key_env may name in POST /workers; the router's own "
             "flags and YAML file may name any."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kMock, .section = kSecurity,
     .help = "Key that requests must present as a bearer token."},

    // Answers
    {.name = "model", .type = kList, .fallback = "mock-model", .commands = kMock,
     .section = kAnswers, .placeholder = "NAME...",
     .help = "Models it claims to serve."},
    {.name = "lora", .type = kList, .fallback = "", .commands = kMock, .section = kAnswers,
     .placeholder = "NAME...",
     .help = "Adapters of the first model, each of which can be requested by its name."},
    {.name = "engine", .type = kChoice, .fallback = "vllm", .choices = kEngines,
     .commands = kMock, .section = kAnswers, .placeholder = "ENGINE",
     .help = "Engine whose routes and answers are imitated."},
    {.name = "name", .type = kText, .fallback = "", .commands = kMock, .section = kAnswers,
     .help = "Name of the mock in its answers; the port if empty."},
    {.name = "tokens", .type = kInteger, .fallback = "32", .range = {0, kMillion},
     .commands = kMock, .section = kAnswers,
     .help = "Length of an answer whose request names none."},
    {.name = "cached-tokens-report", .type = kFlag, .fallback = "true", .commands = kMock,
     .section = kAnswers,
     .help = "Report in the usage how many tokens of a prompt were found in the cache, as vllm "
             "does with --enable-prompt-tokens-details and sglang with --enable-cache-report."},
    {.name = "reasoning-parser", .type = kText, .commands = kMock, .section = kAnswers,
     .placeholder = "NAME",
     .help = "SGLang's option of that name: it decides what becomes of thoughts in requests to "
             "/v1/messages."},
    {.name = "force-usage", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kAnswers,
     .help = "Report the usage at the end of every stream, whether its client asked for it or "
             "not, as vllm does with --enable-force-include-usage."},
    {.name = "usage-with-choices", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kAnswers,
     .help = "Report the usage of a stream in its last event that has choices, not in a separate "
             "event."},
    {.name = "first-token-delay", .type = kDuration, .fallback = "50ms", .range = {0, kHour},
     .commands = kMock, .section = kAnswers,
     .help = "Pause before the first token of a paced answer."},
    {.name = "token-interval", .type = kDuration, .fallback = "10ms", .range = {0, kHour},
     .commands = kMock, .section = kAnswers,
     .help = "Pause between the tokens of a paced answer."},
    {.name = "chunk-bytes", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kAnswers,
     .help = "Pad every token of a paced answer to this many bytes."},

    // Simulation
    {.name = "profile", .type = kChoice, .fallback = "h200-llama-3.1-8b", .choices = kProfiles,
     .commands = kMock | kDemo, .section = kSimulation, .placeholder = "PROFILE",
     .help = "Profile of step times for the simulated engine; paced simulates no steps and "
             "answers every request at a fixed pace."},
    {.name = "speedup", .type = kNumber, .fallback = "1", .range = {0.001, kMillion},
     .commands = kMock | kDemo, .section = kSimulation,
     .help = "How many times faster than its profile the engine is."},
    {.name = "block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kSimulation,
     .help = "Tokens per block of the KV cache; 0 means the engine's own default: 16 for vllm, 1 "
             "for sglang, 32 for trtllm."},
    {.name = "num-blocks", .type = kInteger, .fallback = "0", .range = {0, 16 * kMillion},
     .commands = kMock, .section = kSimulation,
     .help = "Blocks of each rank's KV cache, one of which is reserved; 0 means as many as hold "
             "262144 tokens."},
    {.name = "num-blocks", .type = kInteger, .fallback = "1024", .range = {0, 16 * kMillion},
     .commands = kDemo, .section = kSimulation,
     .help = "Blocks of each worker's KV cache, one of which is reserved; 0 means as many as hold "
             "262144 tokens."},
    {.name = "max-num-seqs", .type = kInteger, .fallback = "256", .range = {1, 65536},
     .commands = kMock, .section = kSimulation,
     .help = "Sequences that a rank runs at once."},
    {.name = "max-num-batched-tokens", .type = kInteger, .fallback = "8192",
     .range = {1, kMillion}, .commands = kMock, .section = kSimulation,
     .help = "Tokens that a step of a rank computes at most."},
    {.name = "dp-size", .type = kInteger, .fallback = "1", .range = {1, 64},
     .commands = kMock, .section = kSimulation,
     .help = "Data-parallel ranks, each with its own scheduler and KV cache."},
    {.name = "iter-stats", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kMock, .section = kSimulation, .placeholder = "WHETHER",
     .help = "Whether trtllm keeps the statistics of its iterations for GET /metrics; without it "
             "the list there is empty."},
    {.name = "prefix-caching", .type = kFlag, .fallback = "true", .commands = kMock,
     .section = kSimulation,
     .help = "Keep computed blocks for later prompts with the same prefix; without it there are "
             "no cache hits and no KV events."},
    {.name = "instances", .type = kInteger, .fallback = "1", .range = {1, 256}, .commands = kMock,
     .section = kSimulation,
     .help = "Engines in this process, each with a port of its own: the ports after --port, or "
             "free ones; together they count tokens that one engine computes though another has "
             "them cached."},
    {.name = "seed", .type = kInteger, .fallback = "1", .range = {0, 0x1p53}, .commands = kMock,
     .section = kSimulation,
     .help = "Seed of the words of answers and of the faults, so that a run can be repeated."},

    // KV events of the workers
    {.name = "kv-events", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kServe, .section = kEvents, .placeholder = "WHETHER",
     .help = "Whether the workers' KV events are followed, to learn what their caches hold."},
    {.name = "kv-events-port", .type = kInteger, .fallback = "5557", .range = {1, 65535},
     .commands = kServe, .section = kEvents, .placeholder = "PORT",
     .help = "Port on a worker's host that its first rank publishes KV events on, the next ranks on "
             "those after it, where neither its entry nor the engine names one."},
    {.name = "kv-events-bind", .type = kText, .fallback = "", .commands = kServe,
     .section = kEvents, .placeholder = "ENDPOINT",
     .help = "Address for engines that connect their publisher to the router, for example "
             "tcp://*:5557; kv_events_topic identifies each engine."},
    {.name = "kv-events-bind-allow", .type = kList, .fallback = "", .commands = kServe,
     .section = kEvents, .placeholder = "NETWORK",
     .help = "Networks whose addresses may connect to --kv-events-bind, for example 10.0.0.0/8; "
             "without it every address may."},
    {.name = "kv-events-bind-key", .type = kSecret, .fallback = "", .commands = kServe,
     .section = kEvents, .placeholder = "KEY",
     .help = "Password that publishers must send to connect to --kv-events-bind (ZeroMQ's PLAIN "
             "mechanism, any user name), in clear text."},
    {.name = "kv-events-memory", .type = kBytes, .fallback = "256MiB", .range = {128 * kMiB, kTiB},
     .commands = kServe, .section = kEvents,
     .help = "Memory for KV event messages above 64 KiB, of all streams together; beyond it the "
             "connection with the largest message is closed and opened again."},
    {.name = "kv-events-replay-timeout", .type = kDuration, .fallback = "5s",
     .range = {10 * kMillisecond, kHour}, .commands = kServe, .section = kEvents,
     .help = "How long an engine may take to replay missing KV events before they count as lost."},
    {.name = "kv-events-replay-wait", .type = kDuration, .fallback = "1s", .range = {0, kHour},
     .commands = kServe, .section = kEvents,
     .help = "How long a request waits at most while a worker that has just joined replays the KV "
             "events of its cache; 0s: requests do not wait."},
    {.name = "kv-events-poll-interval", .type = kDuration, .fallback = "250ms",
     .range = {kMillisecond, kHour}, .commands = kServe, .section = kEvents,
     .help = "Pause between two polls of an engine whose KV events are polled (TensorRT-LLM)."},
    {.name = "kv-cache-block-size", .type = kInteger, .fallback = "0", .range = {0, 1 << 20},
     .commands = kServe, .section = kEvents, .placeholder = "TOKENS",
     .dynamo = {{"DYN_KV_CACHE_BLOCK_SIZE"}},
     .help = "Tokens per block, which must match the backend's on every worker; 0, the default, "
             "detects it from the workers."},
    {.name = "block-size-conflict", .type = kChoice, .fallback = "refuse",
     .choices = kConflictRules, .commands = kServe, .section = kEvents, .placeholder = "WHAT",
     .help = "What happens when workers of one model have different block sizes: refuse exits at "
             "start and later rejects workers that differ; mixed serves all of them side by side."},
    {.name = "block-size-wait", .type = kDuration, .fallback = "10s", .range = {0, kHour},
     .commands = kServe, .section = kEvents,
     .help = "How long requests and readiness wait at start for a worker to report its block size; once "
             "one has, the others have one more second."},
    {.name = "index-max-bytes", .type = kBytes, .fallback = "4GiB",
     .range = {16 * kMiB, 1024 * kGiB}, .commands = kServe, .section = kEvents,
     .help = "Memory limit of the index of the workers' caches; at the limit a rank drops the "
             "ends of its longest prefixes first."},

    // KV events of the simulated engine
    {.name = "kv-events", .type = kChoice, .fallback = "on", .choices = kSwitch,
     .commands = kMock, .section = kSimulation, .placeholder = "WHETHER",
     .help = "Whether the simulated engine publishes KV events, as the real engine does."},
    {.name = "wire", .type = kText, .fallback = "", .commands = kMock, .section = kSimulation,
     .placeholder = "VERSION",
     .help = "Release whose KV event format is imitated: of vllm since 0.9.0, of sglang since "
             "0.5.6, for trtllm poll or stream; the newest, or poll, if empty."},
    {.name = "wire-hashes", .type = kChoice, .fallback = "int", .choices = kHashForms,
     .commands = kMock, .section = kSimulation, .placeholder = "FORM",
     .help = "Block hashes as integers or, for vllm since 0.10.2, as 32 raw bytes."},
    {.name = "kv-events-port", .type = kInteger, .fallback = "0", .range = {0, 65535},
     .commands = kMock, .section = kSimulation, .placeholder = "PORT",
     .help = "Port that the first rank publishes KV events on, the next ranks on those after it; "
             "0 picks free ones, which the engine's own pages report."},
    {.name = "kv-events-replay-port", .type = kText, .fallback = "0", .commands = kMock,
     .section = kSimulation, .placeholder = "PORT",
     .help = "Port that the first rank replays KV events on, the next ranks on those after it; 0 "
             "picks free ones, off replays nothing."},
    {.name = "kv-events-topic", .type = kText, .fallback = "", .commands = kMock,
     .section = kSimulation, .placeholder = "TOPIC",
     .help = "Topic that KV events are published under."},
    {.name = "kv-events-buffer", .type = kInteger, .fallback = "10000", .range = {0, kMillion},
     .commands = kMock, .section = kSimulation,
     .help = "Batches of KV events kept for replay, or events kept until they are polled."},
    {.name = "kv-events-connect", .type = kText, .fallback = "", .commands = kMock,
     .section = kSimulation, .placeholder = "ENDPOINT",
     .help = "Publish to a subscriber that is bound here (the next ranks to the ports after it) "
             "instead of binding a port."},

    // Faults
    {.name = "fail-rate", .type = kNumber, .fallback = "0", .range = {0, 1}, .commands = kMock,
     .section = kFaults,
     .help = "Share of requests answered with 500."},
    {.name = "hang-rate", .type = kNumber, .fallback = "0", .range = {0, 1}, .commands = kMock,
     .section = kFaults,
     .help = "Share of requests accepted and never answered."},
    {.name = "die-after-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Close the connection after this many tokens; 0 means never."},
    {.name = "abort-after-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "End answers with finish_reason abort after this many tokens, as a vLLM that is stopped "
             "by SIGTERM; 0 means never."},
    {.name = "drain-abort", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kFaults,
     .help = "Answer 200 with finish_reason abort and no tokens, as an engine that is draining."},
    {.name = "busy", .type = kFlag, .fallback = "false", .commands = kMock, .section = kFaults,
     .help = "Answer 503 to every POST under /v1/."},
    {.name = "refuse", .type = kFlag, .fallback = "false", .commands = kMock, .section = kFaults,
     .help = "Close every connection at once."},
    {.name = "slow-start", .type = kDuration, .fallback = "0", .range = {0, kDay},
     .commands = kMock, .section = kFaults,
     .help = "Answer 503 to health checks for this time."},
    {.name = "block-size-report", .type = kText, .fallback = "", .commands = kMock,
     .section = kFaults, .placeholder = "TOKENS",
     .help = "Block size that its own pages report instead of the real one, like a stale label or "
             "one without context parallelism; none omits it, empty reports the real one."},
    {.name = "report-delay", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kMock, .section = kFaults,
     .help = "Delay the answers of the pages where engines describe themselves: /metrics, "
             "/server_info, /get_server_info, /prometheus/metrics, /kv_event_sources."},
    {.name = "tokenize-delay", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kMock, .section = kFaults,
     .help = "Delay the answers of /tokenize while requests are running, as a busy engine."},
    {.name = "prefix-caching-report", .type = kChoice, .fallback = "truth",
     .choices = kCachingReports, .commands = kMock, .section = kFaults, .placeholder = "WHAT",
     .help = "What its own pages report about --prefix-caching: the real value, or nothing."},
    {.name = "prompt-fault", .type = kChoice, .fallback = "none", .choices = kPromptFaults,
     .commands = kMock, .section = kFaults, .placeholder = "FAULT",
     .help = "Compute with other tokens than its tokenizer gives for texts and chats: bos adds "
             "one at the front, template adds three after the first eight, vocabulary changes the "
             "id of every token."},
    {.name = "on-sigterm", .type = kChoice, .fallback = "exit", .choices = kDepartures,
     .commands = kMock, .section = kFaults, .placeholder = "HOW",
     .help = "How it shuts down: exit at once; abort answers new requests with finish_reason "
             "abort, lets the others finish and exits; abort-running ends the others with abort "
             "too, as vLLM does without a shutdown timeout; silent closes the listener, keeps open "
             "streams open without sending anything, and exits at the second signal."},

    {.name = "kv-drop-every", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Do not publish every Nth batch of KV events, though it can be replayed; 0 means "
             "never."},
    {.name = "kv-lose-every", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Neither publish nor replay every Nth batch of KV events; 0 means never."},
    {.name = "kv-delay", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kMock, .section = kFaults,
     .help = "Delay KV events by this time."},
    {.name = "kv-silent", .type = kFlag, .fallback = "false", .commands = kMock,
     .section = kFaults,
     .help = "Claim to publish KV events, but publish and replay none."},
    {.name = "kv-events-fault", .type = kChoice, .fallback = "none", .choices = kEventFaults,
     .commands = kMock, .section = kFaults, .placeholder = "FAULT",
     .help = "What its KV events omit: no-removals omits removed blocks; hide-salt and hide-lora "
             "omit the salt or the adapter that keeps prompts apart."},
    {.name = "kv-block-size-label", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kFaults,
     .help = "Block size that KV events report instead of the real one; 0 means the real one."},
    {.name = "kv-restart-after", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kMock, .section = kFaults,
     .help = "Act once as if the process had been restarted after this many batches of KV events: "
             "the cache is empty, sequence numbers begin at 0, there is nothing to replay; 0 "
             "means never."},
    {.name = "kv-restart-block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kMock, .section = kFaults,
     .help = "Tokens per block after the restart of --kv-restart-after, which the pages report as "
             "well; 0 keeps the size."},

    {.name = "break-after", .type = kDuration, .fallback = "0", .range = {0, kYear},
     .commands = kDemo, .section = kFaults,
     .help = "Let one worker of the router lose KV events this long after the start, as key b "
             "does; 0 leaves it to the key."},
    {.name = "repair-after", .type = kDuration, .fallback = "0", .range = {0, kYear},
     .commands = kDemo, .section = kFaults,
     .help = "Repair that worker this long after the start, as key r does; 0 leaves it to the "
             "key."},

    // Traffic
    {.name = "concurrency", .type = kInteger, .fallback = "12", .range = {1, 10000},
     .commands = kDemo, .section = kTraffic,
     .help = "Simulated users who talk to each router at once."},
    {.name = "think-time", .type = kDuration, .fallback = "1s", .range = {0, kHour},
     .commands = kDemo, .section = kTraffic,
     .help = "Average pause between an answer and the next message of its conversation."},
    {.name = "sessions", .type = kFlag, .fallback = "false", .commands = kDemo,
     .section = kTraffic,
     .help = "Name every conversation in X-Session-ID, so that its turns stay with one worker."},
    {.name = "seconds", .type = kInteger, .fallback = "0", .range = {0, kYear}, .commands = kDemo,
     .section = kTraffic,
     .help = "Stop after this many seconds; 0 runs until interrupted."},

    // Listening to KV events
    {.name = "endpoints", .type = kList, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "ENDPOINT...",
     .help = "What to listen to: tcp://HOST:PORT or ipc://PATH of a publisher, or http://HOST:PORT "
             "of a worker, which is asked where its ranks publish.",
     .positional = true},
    {.name = "bind", .type = kText, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "ENDPOINT",
     .help = "Wait at this address, such as tcp://*:5557, for engines that connect their "
             "publisher to it."},
    {.name = "topic", .type = kText, .fallback = "", .commands = kListen, .section = kEvents,
     .placeholder = "PREFIX",
     .help = "Show topics with this prefix; if empty, the topic that the worker reports, or all."},
    {.name = "replay", .type = kFlag, .fallback = "false", .commands = kListen, .section = kEvents,
     .help = "First show the events that the engine keeps for replay."},
    {.name = "replay-endpoint", .type = kText, .fallback = "", .commands = kListen,
     .section = kEvents, .placeholder = "ENDPOINT",
     .help = "Where to ask for a replay, for a tcp:// or ipc:// endpoint, which cannot report it; "
             "implies --replay."},
    {.name = "drain", .type = kFlag, .fallback = "false", .commands = kListen, .section = kEvents,
     .help = "Also poll TensorRT-LLM, whose queue returns every event only once: a router that "
             "polls the same engine loses the events shown here."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kListen, .section = kEvents,
     .help = "API key for requests to the worker."},

    // Output of listen
    {.name = "json", .type = kFlag, .fallback = "false", .commands = kListen, .section = kOutput,
     .help = "Print one JSON object per line and nothing else; hashes are hexadecimal strings."},
    {.name = "show-tokens", .type = kFlag, .fallback = "false", .commands = kListen,
     .section = kOutput, .aliases = {"tokens"},
     .help = "Show token ids, from which prompts can be read; they are never shown without this."},
    {.name = "interval", .type = kDuration, .fallback = "5s", .range = {0, kDay},
     .commands = kListen, .section = kOutput,
     .help = "Time between two summaries; 0 prints only the last one."},
    {.name = "count", .type = kInteger, .fallback = "0", .range = {0, 0x1p53}, .commands = kListen,
     .section = kOutput,
     .help = "End after this many batches; 0 means never."},
    {.name = "for", .type = kDuration, .fallback = "0", .range = {0, kYear}, .commands = kListen,
     .section = kOutput,
     .help = "End after this time; 0 means never."},
    {.name = "wait", .type = kDuration, .fallback = "0", .range = {0, kYear}, .commands = kListen,
     .section = kOutput,
     .help = "Fail with advice on what to check if nothing arrives within this time from the "
             "start; 0 means never."},

    // Showing tokens
    {.name = "input", .type = kList, .fallback = "", .commands = kTokenize, .section = kTokens,
     .placeholder = "[FILE]",
     .help = "What to read: a text, or a request to /v1/chat/completions or /v1/completions as "
             "JSON; without a file, or for -, standard input.",
     .positional = true},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens, .placeholder = "DIR",
     .help = "Folder with tokenizer.json, tokenizer_config.json and the chat template, or "
             "hf:ORG/NAME[@REVISION], which downloads these files into the Hugging Face cache."},
    {.name = "tokenizer-path", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens, .placeholder = "FILE|DIR",
     .help = "Another tokenizer.json, or its folder, in place of the one in model-path."},
    {.name = "engine", .type = kChoice, .fallback = "vllm", .choices = kEngines,
     .commands = kTokenize, .section = kTokens, .placeholder = "NAME",
     .help = "Engine whose preparation of chats for the template is followed."},
    {.name = "as", .type = kChoice, .fallback = "auto", .choices = kInputForms,
     .commands = kTokenize, .section = kTokens, .placeholder = "FORM",
     .help = "What the input is: a text, or the body of a request to /v1/chat/completions, "
             "/v1/completions, /v1/messages or /v1/responses; auto: what it looks like."},
    {.name = "reasoning-parser", .type = kText, .commands = kTokenize, .section = kTokens,
     .placeholder = "NAME",
     .help = "SGLang's --reasoning-parser, or none, which decides what becomes of thoughts in "
             "requests to /v1/messages; by default it is guessed from the chat template."},
    {.name = "special-tokens", .type = kFlag, .fallback = "true", .commands = kTokenize,
     .section = kTokens,
     .help = "Add the special tokens that the tokenizer puts around a text, such as BOS; requests "
             "set this themselves."},
    {.name = "literal-user-text", .type = kFlag, .fallback = "false", .commands = kTokenize,
     .section = kTokens,
     .help = "Special tokens in user messages stay text, as with serve --literal-user-text."},
    {.name = "block-size", .type = kInteger, .fallback = "16", .range = {1, 65536},
     .commands = kTokenize, .section = kTokens,
     .help = "Tokens per block of the key chain; must match the backend: vLLM 16, TensorRT-LLM 32, "
             "SGLang 1."},
    {.name = "lora", .type = kText, .fallback = "", .commands = kTokenize, .section = kTokens,
     .placeholder = "NAME",
     .help = "Adapter whose keys to show."},
    {.name = "cache-salt", .type = kText, .fallback = "", .commands = kTokenize,
     .section = kTokens,
     .help = "Salt of the keys, unless the input is a request that has one."},
    {.name = "json", .type = kFlag, .fallback = "false", .commands = kTokenize, .section = kOutput,
     .help = "Print one JSON object per input and nothing else; keys are hexadecimal strings."},
    {.name = "lines", .type = kFlag, .fallback = "false", .commands = kTokenize,
     .section = kOutput,
     .help = "Every line of the input is one JSON value: a string is a text, an object a request."},

    // Sources of doctor
    {.name = "url", .type = kText, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL", .aliases = {"fathom-url"},
     .help = "A running Fathom: its /health, /metrics, /debug/index and /debug/decisions are "
             "read."},
    {.name = "worker", .type = kList, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL...",
     .help = "Engines, asked directly: their pages about cache, events and load."},
    {.name = "dynamo-url", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSources, .placeholder = "URL",
     .help = "A frontend of Dynamo: its /health and /metrics are read."},
    {.name = "logs", .type = kFiles, .fallback = "", .commands = kDoctor, .section = kSources,
     .aliases = {"log"},
     .help = "Logs of Fathom, of Dynamo's frontend and workers, of engines; - is standard input."},
    {.name = "manifest", .type = kFiles, .fallback = "", .commands = kDoctor,
     .section = kSources, .aliases = {"manifests"},
     .help = "Deployment files: Kubernetes YAML and what kubectl get -o yaml prints, Helm values, "
             "compose files, engine files, TOML, command lines; - is standard input."},
    {.name = "nvidia-smi", .type = kFiles, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "Output of nvidia-smi on the workers; - is standard input."},
    {.name = "dcgm", .type = kFiles, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "URL|FILE...",
     .help = "DCGM exporters, or saved pages of them: memory of each GPU."},
    {.name = "listen", .type = kDuration, .fallback = "0", .range = {0, kHour},
     .commands = kDoctor, .section = kSources,
     .help = "Subscribe to the workers' KV events for this time and measure them; 0 does not "
             "subscribe."},
    {.name = "probe", .type = kInteger, .fallback = "0", .range = {0, 256}, .commands = kDoctor,
     .section = kSources,
     .help = "Send small conversations through the router, one at a time and then more, up to "
             "this many at once, to see whether follow-up turns get faster; not read-only, "
             "because it puts load on the engines."},
    {.name = "probe-model", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSources, .placeholder = "NAME",
     .help = "Model that the probe requests; empty: the first that the router lists."},
    {.name = "drain", .type = kFlag, .fallback = "false", .commands = kDoctor,
     .section = kSources,
     .help = "Also read pages of TensorRT-LLM that return each item only once: a router that "
             "polls the same engine loses what is read here."},
    {.name = "api-key", .type = kSecret, .fallback = "", .commands = kDoctor, .section = kSources,
     .help = "API key for requests to routers, as a client."},
    {.name = "worker-api-key", .type = kSecret, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "API key for requests to engines."},
    {.name = "admin-key", .type = kSecret, .fallback = "", .commands = kDoctor,
     .section = kSources,
     .help = "Key of Fathom's admin pages."},
    {.name = "ca-file", .type = kText, .fallback = "", .commands = kDoctor, .section = kSources,
     .placeholder = "FILE",
     .help = "Verify https:// routers and workers against these certificates instead of the "
             "system's."},
    {.name = "timeout", .type = kDuration, .fallback = "5s", .range = {0.1, kHour},
     .commands = kDoctor, .section = kSources,
     .help = "Longest wait for one answer."},

    // Kubernetes
    {.name = "kube", .type = kFlag, .fallback = "false", .commands = kDoctor, .section = kCluster,
     .help = "Read the objects of a namespace and the logs of its pods through the Kubernetes API, "
             "with GET alone."},
    {.name = "kubeconfig", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kCluster, .placeholder = "FILE",
     .help = "Kubeconfig with the API server and credentials; empty: $KUBECONFIG, ~/.kube/config, "
             "or the service account of the pod that this runs in."},
    {.name = "kube-context", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kCluster, .placeholder = "NAME",
     .help = "Context of the kubeconfig; empty: its current one."},
    {.name = "namespace", .type = kText, .fallback = "", .commands = kDoctor, .section = kCluster,
     .placeholder = "NAME",
     .help = "Namespace to read; empty: the context's, or the pod's own."},
    {.name = "kube-log-lines", .type = kInteger, .fallback = "10000", .range = {0, kMillion},
     .commands = kDoctor, .section = kCluster,
     .help = "Last lines of each pod's log to read; 0 reads no logs."},

    // Model and memory
    {.name = "model-config", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSizing, .placeholder = "FILE",
     .help = "The model's config.json, from which the cost of a cached token is calculated."},
    {.name = "model-path", .type = kText, .fallback = "", .commands = kDoctor,
     .section = kSizing, .placeholder = "DIR",
     .help = "Folder of the model: its config.json, and its tokenizer, which is compared with the "
             "workers'."},
    {.name = "engine", .type = kChoice, .fallback = "any", .choices = kEnginesOrAny,
     .commands = kDoctor, .section = kSizing, .placeholder = "NAME",
     .help = "Engine whose memory formula to use, if no other input shows which engine it is."},
    {.name = "gpu", .type = kText, .fallback = "", .commands = kDoctor, .section = kSizing,
     .placeholder = "NAME|SIZE",
     .help = "The GPU, by name (H100, A100-40GB, L40S) or by memory (80GiB)."},
    {.name = "tp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"tensor-parallel-size"},
     .help = "GPUs that share each layer; 0: as manifests say, else 1."},
    {.name = "pp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"pipeline-parallel-size"},
     .help = "Stages that the layers are divided into; 0: as manifests say, else 1."},
    {.name = "dp", .type = kInteger, .fallback = "0", .range = {0, 1024}, .commands = kDoctor,
     .section = kSizing, .aliases = {"data-parallel-size"},
     .help = "Data-parallel ranks of a worker; 0: as manifests say, else 1."},
    {.name = "kv-dtype", .type = kText, .fallback = "", .commands = kDoctor, .section = kSizing,
     .placeholder = "TYPE", .aliases = {"kv-cache-dtype"},
     .help = "Type of cached values: auto, bf16, fp8, fp8_ds_mla, nvfp4; empty: as manifests say, "
             "else the model's."},
    {.name = "weights", .type = kBytes, .fallback = "0", .range = {0, 64 * kTiB},
     .commands = kDoctor, .section = kSizing,
     .help = "Size of the model's weights; 0: from the index beside config.json, else calculated."},
    {.name = "memory-fraction", .type = kNumber, .fallback = "0", .range = {0, 1},
     .commands = kDoctor, .section = kSizing,
     .aliases = {"gpu-memory-utilization", "mem-fraction-static"},
     .help = "Share of GPU memory that the engine may use, in its own terms; 0: as manifests say, "
             "else its default."},
    {.name = "block-size", .type = kInteger, .fallback = "0", .range = {0, 65536},
     .commands = kDoctor, .section = kSizing,
     .help = "Tokens per block of the engine, for sizing; 0: as seen, else its default."},
    {.name = "max-num-seqs", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Sequences that an engine runs at once; 0: as seen."},
    {.name = "worker-count", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing, .aliases = {"replicas"},
     .help = "Workers that share the load; 0: as seen, else 1."},
    {.name = "concurrency", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Requests in flight on the whole fleet; 0: as seen."},
    {.name = "prompt-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Mean length of a prompt; 0: as seen."},
    {.name = "output-tokens", .type = kInteger, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Mean length of an answer; 0: as seen."},
    {.name = "request-rate", .type = kNumber, .fallback = "0", .range = {0, kMillion},
     .commands = kDoctor, .section = kSizing,
     .help = "Requests per second on the whole fleet; 0: as seen."},
    {.name = "turn-gap", .type = kDuration, .fallback = "0", .range = {0, kDay},
     .commands = kDoctor, .section = kSizing,
     .help = "Time between two turns of a conversation; 0: 30 s, and the report says so."},

    // Output of doctor and lint
    {.name = "format", .type = kChoice, .fallback = "text", .choices = kReportFormats,
     .commands = kDoctor, .section = kOutput, .placeholder = "FORMAT",
     .help = "How to print the report; json, markdown and html print nothing else."},
    {.name = "output", .type = kText, .fallback = "", .commands = kDoctor, .section = kOutput,
     .placeholder = "FILE",
     .help = "Write the report to this file instead of standard output."},

    {.name = "docs-url", .type = kText, .fallback = "", .commands = kDoctor | kLint,
     .section = kOutput, .placeholder = "URL",
     .help = "Where docs/ is published: findings link to pages below this URL; if empty, they name "
             "the command that prints the page, fathom docs NAME."},

    // Input and output of lint
    {.name = "files", .type = kFiles, .fallback = "", .commands = kLint, .section = kSources,
     .help = "Files and folders to check; - is standard input.",
     .positional = true},
    {.name = "format", .type = kChoice, .fallback = "text", .choices = kLogFormats,
     .commands = kLint, .section = kOutput, .placeholder = "FORMAT",
     .help = "Findings for people, or one JSON object."},
    {.name = "diff", .type = kFlag, .fallback = "false", .commands = kLint, .section = kOutput,
     .help = "Print the changes that fix what can be fixed safely, for patch -p1."},
    {.name = "fix", .type = kFlag, .fallback = "false", .commands = kLint, .section = kOutput,
     .help = "Write these changes into the files."},

    // Which router ready asks
    {.name = "url", .type = kList, .fallback = "", .commands = kReady, .section = kSources,
     .placeholder = "URL",
     .help = "The router, http://HOST:PORT; if empty, the one at --host and --port.",
     .positional = true},
    {.name = "ca-file", .type = kText, .fallback = "", .commands = kReady, .section = kSources,
     .placeholder = "FILE",
     .help = "Verify an https:// URL against these certificates instead of the system's."},
    {.name = "timeout", .type = kDuration, .fallback = "3s", .range = {0.1, kHour},
     .commands = kReady, .section = kSources,
     .help = "Longest wait for the answer."},

    // Logging
    {.name = "log-level", .type = kChoice, .fallback = "warn", .choices = kLogLevels,
     .commands = kDemo, .section = kLogging, .placeholder = "LEVEL",
     .help = "Least severe records to write."},
    {.name = "log-level", .type = kChoice, .fallback = "info", .choices = kLogLevels,
     .commands = kServe | kMock | kRegister, .section = kLogging, .placeholder = "LEVEL",
     .help = "Least severe records to write."},
    {.name = "log-format", .type = kChoice, .fallback = "text", .choices = kLogFormats,
     .commands = kServe | kMock | kRegister, .section = kLogging, .placeholder = "FORMAT",
     .help = "Records for people or for machines."},
    {.name = "log-selections", .type = kFlag, .fallback = "true", .commands = kServe,
     .section = kLogging,
     .help = "Log the choice of a worker for every request: its cost, cached blocks and the size of "
             "the index."},
    {.name = "docs-url", .type = kText, .fallback = "", .commands = kServe,
     .section = kLogging, .placeholder = "URL",
     .help = "Where docs/ is published: records and /health link to pages below this URL; if empty, "
             "they name the command that prints the page, fathom docs NAME."},
    {.name = "log-requests", .type = kFlag, .fallback = "false", .commands = kServe,
     .section = kLogging,
     .help = "Write one INFO record per request."},
};
// clang-format on

}  // namespace

std::span<const Option> Options() { return kOptions; }

}  // namespace fathom
