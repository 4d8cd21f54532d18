"""The only place for torch and transformers: loading, tokens, the sampling pipeline, the decode loop.

Knows neither gradio nor plotly nor the page.
"""
