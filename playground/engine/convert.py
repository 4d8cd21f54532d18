"""A GGUF file written once as safetensors, so that the next load takes a second.

The numbers are those of the dequantised file in float32, exactly: Q4_1 blocks do not survive a
rounding to 16 bits. Knows no cache and no download.
"""

from pathlib import Path


def gguf_to_safetensors(gguf: Path, folder: Path) -> None:
    """Write weights, tokenizer, chat template and generation config of `gguf` into `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from playground.engine.quiet import quiet

    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True)
        module = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
        )
        # The weights are plain floats now; a model that still says otherwise cannot be saved.
        module.hf_quantizer = None
        if hasattr(module.config, "quantization_config"):
            del module.config.quantization_config
        module.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # weights are written for their owner alone; a shared cache has more readers
