#!/bin/sh
vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching
