#!/bin/sh
# Four ranks, two of them here.
vllm serve Qwen/Qwen3-8B --data-parallel-size 4 --data-parallel-size-local 2 --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5559"}'
python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --page-size 16 --dp-size 4 --nnodes 2 --kv-events-config '{"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5559"}'
