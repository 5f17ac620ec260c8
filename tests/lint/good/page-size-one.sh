#!/bin/sh
python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --page-size 64 \
  --kv-events-config '{"publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558"}'
