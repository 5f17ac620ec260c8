#!/bin/sh
# Whose SGLang is not known by the tag, which is Dynamo's.
docker run nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.3.0 python3 -m dynamo.sglang --model-path Qwen/Qwen3-8B --page-size 16 --kv-events-config '{"publisher":"zmq","endpoint":"tcp://0.0.0.0:5557"}'
