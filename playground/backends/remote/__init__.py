"""A model behind a server as a backend: llama.cpp's own API, OpenAI completions (vLLM, SGLang), chat logprobs.

The server computes and chooses; here its answers become the same events as everywhere. Knows no page.
"""
