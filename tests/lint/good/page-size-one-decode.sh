#!/bin/sh
python3 -m dynamo.frontend --router-mode kv --kv-cache-block-size 16 &
python3 -m dynamo.sglang --model-path Qwen/Qwen3-8B --page-size 16 --disaggregation-mode prefill \
  --kv-events-config '{"publisher":"zmq","endpoint":"tcp://*:5557"}' &
python3 -m dynamo.sglang --model-path Qwen/Qwen3-8B --page-size 1 --disaggregation-mode decode --disable-radix-cache
