"""The figures of what a run costs: each a pure function of a value, with its sentence and its table.

Import a figure from its module, for example `from playground.views.figures.prefill import PREFILL`.
"""
