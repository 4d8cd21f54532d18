"""What a Hugging Face Space and `gradio app.py` start: the page, with the default model loading behind it."""

from playground.settings import from_environment
from playground.ui.app import build, free_port, launch, local_models, private
from playground.ui.offer import multilingual

here = from_environment()
alone = private(here.host, shared=here.on_space)
models = local_models(here.model, here.device, here.dtype, here.offline, open_names=alone)
demo = build(models, offer=multilingual(here.offline))

if __name__ == "__main__":
    launch(demo, here.host, here.port if here.on_space else free_port(here.host, here.port))
