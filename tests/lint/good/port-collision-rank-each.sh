#!/bin/sh
# A process for each rank, which adds its own number to the ports.
vllm serve Qwen/Qwen3-8B --port 8001 --data-parallel-size 2 --data-parallel-rank 0 --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}' &
vllm serve Qwen/Qwen3-8B --port 8002 --data-parallel-size 2 --data-parallel-rank 1 --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}' &
wait
