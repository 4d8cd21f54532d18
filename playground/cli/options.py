"""The options that several commands share, each with its one line of help.

Knows names and help texts; what they mean is decided below.
"""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="A Hub id, a folder or a GGUF file. Default: SmolLM2-135M."),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Let a server answer: llama.cpp, vLLM, SGLang, OpenAI's API; llamacpp is one in this process.",
    ),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
Dtype = Annotated[str, typer.Option("--dtype", help="auto, float32, bfloat16, float16, or int8 on a CPU.")]
Offline = Annotated[bool, typer.Option("--offline", help="Fetch nothing: use what is on this machine.")]
Chat = Annotated[
    bool,
    typer.Option("--chat/--raw", help="Use the model's chat template, or the prompt as it is."),
]
System = Annotated[str | None, typer.Option("--system", help="A system prompt, for the chat template.")]
MaxNewTokens = Annotated[int, typer.Option("--max-new-tokens", help="At most so many new tokens.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Repeats the draws. Default: drawn, and reported.")]
Order = Annotated[
    str,
    typer.Option(
        "--order", metavar="ORDER", help="transformers, llama.cpp, or like top_k:top_p:temperature."
    ),
]
TopN = Annotated[int, typer.Option("--top-n", help="Candidates recorded at each step.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object as the last line of stdout.")]
TraceFile = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Write a trace file of the run.")
]
