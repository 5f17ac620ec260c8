// The catalogue: what several routers of a group tell each other. See metrics/catalogue.h.
#pragma once

#include <array>
#include <string_view>

#include "metrics/metric_family.h"

namespace fathom {

inline constexpr std::string_view kReplicaDropNames =
    "key malformed version group old unproven unknown origins too_long not_sent";

inline constexpr auto kReplicaFamilies = std::to_array<MetricFamily>({
    {.name = "fathom_replicas",
     .type = MetricType::kGauge,
     .help = "Routers of the group that are heard, this one included",
     .action = "Fewer than run: those are away, or the carrier is. 1 with `--replicas` set: this "
               "router chooses alone.",
     .page = "runbooks/replica-alone.md"},
    {.name = "fathom_replica_carrier_up",
     .type = MetricType::kGauge,
     .help = "1 while messages to and from the other replicas travel",
     .action = "0: requests are served, but every router sees its own load alone. /health has the "
               "carrier's error.",
     .page = "runbooks/replica-alone.md"},
    {.name = "fathom_replica_age_seconds",
     .type = MetricType::kGauge,
     .help = "Time since another replica was last heard",
     .action = "Below 2 is good. At `--replica-timeout` it is forgotten.",
     .label_slots = {{{"replica"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_round_trip_seconds",
     .type = MetricType::kGauge,
     .help = "Time of a message to another replica and back",
     .action = "Half of it is how late this router's view is. Above 0.1 bursts scatter.",
     .label_slots = {{{"replica"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_requests",
     .type = MetricType::kGauge,
     .help = "Requests in flight that a replica says it has placed",
     .action = "About equal under a balancer that spreads evenly.",
     .label_slots = {{{"replica"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_messages_total",
     .type = MetricType::kCounter,
     .help = "Messages between replicas",
     .action = "`received` no longer increases while `sent` does: no other router is heard.",
     .label_slots = {{{"direction", "sent received"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_bytes_total",
     .type = MetricType::kCounter,
     .help = "Bytes of the messages between replicas",
     .action = "Grows with requests and with the number of replicas: docs/scale.md has what to "
               "expect.",
     .label_slots = {{{"direction", "sent received"}}},
     .page = "scale.md"},
    {.name = "fathom_replica_messages_dropped_total",
     .type = MetricType::kCounter,
     .help = "Messages between replicas that were not used",
     .action = "`key`: a sender has another key, or none. `unproven` is normal when a replica "
               "starts. `version`: two major versions in one group. `too_long`: a message of this "
               "router exceeded 256 KiB; report it. `not_sent`: the carrier is down or too slow.",
     .label_slots = {{{"reason", kReplicaDropNames}}},
     .page = "runbooks/replica-messages-dropped.md"},
    {.name = "fathom_replica_conflicts_total",
     .type = MetricType::kCounter,
     .help = "Times that two processes spoke with the same replica id",
     .action = "Any growth: give each its own `--replica-id`.",
     .page = "runbooks/replica-alone.md"},
    {.name = "fathom_forwarded_requests_total",
     .type = MetricType::kCounter,
     .help = "Requests for models of other replicas (`--models`)",
     .action =
         "`failed`: the replica that has the model does not answer. `misdirected`: the others' "
         "view of this replica's models is old.",
     .label_slots = {{{"result", "forwarded failed misdirected"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_polled_workers",
     .type = MetricType::kGauge,
     .help = "TensorRT-LLM workers that this replica polls, or whose events it hears from another",
     .action = "Over all replicas, each polled worker is polled once.",
     .label_slots = {{{"role", "polls follows"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_polled_answers_total",
     .type = MetricType::kCounter,
     .help = "Answers of TensorRT-LLM with events that were sent to the other replicas, received "
             "from them, dropped because too many waited to be sent, or received in part",
     .action = "`dropped` or `incomplete` increases: the network between the replicas is slower "
               "than the events come; the workers' index entries were cleared.",
     .label_slots = {{{"what", "sent received dropped incomplete"}}},
     .page = "replicas.md"},
    {.name = "fathom_replica_snapshots_total",
     .type = MetricType::kCounter,
     .help =
         "Ranks whose index was asked of other replicas, taken over, dropped because it did not "
         "fit the engine's events, joined without (no replica had it in time), or sent; and times "
         "that a "
         "replica fell silent or sent a damaged one",
     .action =
         "`dropped` for many ranks after a start: their engines have restarted. `without` for "
         "all ranks of a replica that was not the first: it did not hear the others in time.",
     .label_slots = {{{"what", "asked taken dropped without failed sent"}}},
     .page = "replicas.md"},
});

}  // namespace fathom
