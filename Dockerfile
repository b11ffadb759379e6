# dpbench with all extras, from the lock: docker build -t dpbench . && docker run --rm -v "$PWD/results:/results" dpbench \
#   run experiment=quickstart results=/results
FROM python:3.11-slim
WORKDIR /opt/dpbench
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir uv==0.13.8 \
    && uv pip install --system --no-cache --torch-backend cpu -r requirements.lock
COPY conf conf
COPY data data
COPY dpbench dpbench
COPY results results
RUN uv pip install --system --no-cache --no-deps --no-build-isolation -e .
ENTRYPOINT ["dpbench"]
