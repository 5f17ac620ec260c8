#!/bin/sh
vllm serve Qwen/Qwen3-8B --kv-events-config.enable_kv_cache_events true --kv-events-config.publisher zmq --kv-events-config.endpoint 'tcp://*:5559'
