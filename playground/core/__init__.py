"""The pure centre: what a run is, and the arithmetic about it.

Standard library only. Nothing here knows torch, tokenizers, plotly, gradio, files of the
page or the environment; everything here can be tested in milliseconds.
"""
