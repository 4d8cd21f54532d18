"""Pure functions from a run to what is shown: figures, markup, packets for the page.

Knows neither torch nor gradio, and never the engine.
"""
