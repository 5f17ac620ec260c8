#!/bin/sh
events=$((5601 + $1))
vllm serve Qwen/Qwen3-8B --kv-events-config "{\"enable_kv_cache_events\": true, \"publisher\": \"zmq\", \"endpoint\": \"tcp://*:$events\"}"
