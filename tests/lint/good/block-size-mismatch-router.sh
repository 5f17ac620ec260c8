#!/bin/sh
python3 -m dynamo.vllm --model Qwen/Qwen3-0.6B --block-size 16 \
  --kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:20080"}' &
python3 -m dynamo.router --endpoint dynamo.backend.generate --router-block-size 16
