#!/bin/sh
vllm serve Qwen/Qwen3-8B --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://localhost:5557","replay_endpoint":"tcp://*:5558"}'
