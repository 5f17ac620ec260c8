#!/bin/sh
vllm serve Qwen/Qwen3-8B --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://gpu-1.example.internal:5557","replay_endpoint":"tcp://*:5558"}' &
fathom serve --worker-urls http://gpu-1.example.internal:8000
