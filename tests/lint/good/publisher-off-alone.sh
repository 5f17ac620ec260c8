#!/bin/sh
# No router in sight, and no word of events: nothing to say.
vllm serve Qwen/Qwen3-8B --port 8000
