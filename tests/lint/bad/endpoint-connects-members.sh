#!/bin/sh
vllm serve Qwen/Qwen3-8B --kv-events-config.enable_kv_cache_events true --kv-events-config.publisher zmq --kv-events-config.endpoint tcp://0.0.0.0:5559 --kv-events-config.replay_endpoint 'tcp://*:5560'
