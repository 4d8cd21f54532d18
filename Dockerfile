# First Token in a container: a lab server, or a Docker Space (`sdk: docker` and `app_port: 7860` in its README.md).
#
#     docker build -t first-token .                        a CPU; --build-arg TORCH=cu128 for an NVIDIA GPU
#     docker run --rm -p 127.0.0.1:7860:7860 first-token   add --gpus all there; -e PORT= -e MODEL= are honoured
FROM python:3.12-slim
ARG TORCH=cpu

# Hugging Face runs Docker Spaces as user 1000.
RUN useradd --create-home --uid 1000 user
WORKDIR /home/user/app
RUN pip install --no-cache-dir uv

# Before the sources, so that a change of theirs installs nothing again.
COPY pyproject.toml constraints.txt ./
RUN uv pip install --system --no-cache --torch-backend=${TORCH} -c constraints.txt --extra remote --extra metrics -r pyproject.toml

COPY app.py LICENSE README.md ./
COPY playground playground
COPY assets assets

ENV HOST=0.0.0.0 PORT=7860 PYTHONUNBUFFERED=1 HF_HUB_DISABLE_TELEMETRY=1
USER 1000
# The default model lies in the image: a container starts without asking anyone.
RUN python -m playground models fetch

EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health', timeout=4)"]
# The first process of a container ignores SIGTERM; Python hears SIGINT, and ends its runs.
STOPSIGNAL SIGINT
CMD ["python", "-m", "playground", "serve"]
