#!/bin/sh
vllm serve Qwen/Qwen3-8B --data-parallel-size 2 --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'
